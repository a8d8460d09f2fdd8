// Command cell is the smallest cell that imports gnb; archtest counts its dependencies.
package main

import (
	"flag"

	_ "github.com/graphnb/graphnb/gnb"
)

func main() { flag.Parse() }
