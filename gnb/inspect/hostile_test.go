package inspect_test

import (
	"testing"

	"github.com/graphnb/graphnb/gnb/inspect"
	"github.com/graphnb/graphnb/gnb/internal/screen/screentest"
)

// Names of a dataset's types and relations are text in the drawing of a schema.
func TestHostileNames(t *testing.T) {
	for what, text := range screentest.Hostile {
		t.Run(what, func(t *testing.T) {
			types, err := inspect.TypesOf(shop(t))
			if err != nil {
				t.Fatal(err)
			}
			screentest.Poison(&types, text)
			screentest.CheckSVG(t, types.SVG())
		})
	}
}
