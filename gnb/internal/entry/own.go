package entry

import "strings"

// OwnPackage reports whether the library has a package of this path below its module. Other packages of a checkout are
// a user's, whose programs have a code identity as those of any other module.
func OwnPackage(path string) bool {
	return path != "" && strings.Contains(ownPackages, "\n"+path+"\n")
}
