// Command cell is the smallest cell that imports gnb; archtest weighs it.
package main

import (
	"flag"

	_ "github.com/graphnb/graphnb/gnb"
)

func main() { flag.Parse() }
