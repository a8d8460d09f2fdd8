package runfile

import (
	"fmt"
	"strings"
)

// CheckTags returns an error for tags that a filter could not find.
func CheckTags(tags []string) error {
	for _, t := range tags {
		if t == "" || strings.ContainsAny(t, ",|*?[]\" \t\r\n") {
			return fmt.Errorf("gnb: a tag is %q; a tag is a word without spaces, quotes, brackets and the characters , | * ?", t)
		}
	}
	return nil
}
