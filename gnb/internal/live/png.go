package live

// PNG is the final figure of a run as a file: loss and accuracy below a line that
// says what they show, at twice the resolution of a plain screen.
func PNG(s Snapshot) ([]byte, error) {
	var p painter
	return guarded(func() ([]byte, error) {
		data, _, _, err := p.PNG(&s)
		return data, err
	})
}
