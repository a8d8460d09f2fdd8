package plane

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/internal/phrase"
)

// ParseSize returns the size of a cache that the value of an option means: a share of a rank's rows, or bytes.
func ParseSize(option, value string) (share float64, bytes int64, err error) {
	text := strings.TrimSpace(value)
	if text == "" {
		return 0, 0, nil
	}
	wrong := fmt.Errorf(`gnb: %s is %q; it is a share of the rows that a worker has, such as "0.2" or "20%%", or a number of bytes, such as "512MB"`, option, value)
	percent, isPercent := strings.CutSuffix(text, "%")
	if x, err := strconv.ParseFloat(strings.TrimSpace(percent), 64); err == nil {
		if isPercent {
			x /= 100
		}
		if !(x >= 0) || x > 100 || math.IsInf(x, 0) {
			return 0, 0, wrong
		}
		return x, 0, nil
	}
	if bytes, err = phrase.ParseBytes(text); err != nil {
		return 0, 0, wrong
	}
	return 0, bytes, nil
}
