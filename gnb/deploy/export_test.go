package deploy

// OpenAppFirst is OpenApp that compares files of first bytes together.
func OpenAppFirst(path string, first int64) (*App, error) { return openApp(path, path, first) }
