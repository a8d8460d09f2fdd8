package nbtest

import "image"

// Drawn counts the pixels of an image that differ from its corner's, which is background.
func Drawn(img image.Image) int {
	b, n := img.Bounds(), 0
	corner := img.At(b.Min.X, b.Min.Y)
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			if img.At(x, y) != corner {
				n++
			}
		}
	}
	return n
}
