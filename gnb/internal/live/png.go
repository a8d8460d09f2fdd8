package live

// PNG draws the final figure of a run for a file: loss and accuracy below a line that describes
// them, at twice the resolution of a standard screen.
func PNG(s Snapshot) ([]byte, error) {
	var p painter
	return guarded(func() ([]byte, error) {
		data, _, _, err := p.PNG(&s)
		return data, err
	})
}
