package entry

import "runtime/debug"

// Library returns this library's version, followed by the module's version if it has one,
// or by the revision from which the command was built.
func Library(version string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version
	}
	path := Module
	if info.Main.Path == path {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return version + " " + s.Value[:min(12, len(s.Value))]
			}
		}
	}
	for _, m := range info.Deps {
		if m.Path == path && m.Replace == nil && m.Version != "" && m.Version != "(devel)" {
			return version + " " + m.Version
		}
	}
	return version
}
