//go:build tools

package serve

// This import, which no build compiles, makes go.mod require a recent google.golang.org/genproto. In a workspace, such as the one in
// which the cells of a notebook are built, the go command loads the requirements of all modules, and some of gonum's require versions
// that also contain google.golang.org/genproto/googleapis/rpc, which is a module of its own now. An exclude directive in go.mod would
// do as well, but with one, "go install github.com/graphnb/graphnb/gnb/cmd/gnb@latest" is refused.
import _ "google.golang.org/genproto/googleapis/type/date"
