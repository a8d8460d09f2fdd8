// Command compose reads a compose file as Docker Compose does, by the Compose Specification's own
// loader and schema, and prints the project as JSON, with its profiles on.
//
//	go -C tools/compose run . FILE
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: compose FILE")
		os.Exit(2)
	}
	if err := load(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func load(file string) error {
	o, err := cli.NewProjectOptions([]string{file}, cli.WithProfiles([]string{"*"}), cli.WithOsEnv)
	if err != nil {
		return err
	}
	p, err := o.LoadProject(context.Background())
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(p)
}
