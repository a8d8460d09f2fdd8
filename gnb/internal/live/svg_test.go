package live

import (
	"testing"

	"github.com/janpfeifer/gonb/gonbui/protocol"
)

// A drawing reaches a notebook once, with its text for viewers without pictures, and nothing else.
func TestShowSVG(t *testing.T) {
	d := &tape{}
	if err := showSVG("<svg/>", "a drawing", Options{Display: d}); err != nil {
		t.Fatal(err)
	}
	all := d.all()
	if len(all) != 1 || all[0].Data[protocol.MIMEImageSVG] != "<svg/>" || plainOf(all[0]) != "a drawing" {
		t.Errorf("the notebook got %v", all)
	}
	if err := showSVG("<svg/>", "", Options{Quiet: true}); err != nil {
		t.Error(err)
	}
}
