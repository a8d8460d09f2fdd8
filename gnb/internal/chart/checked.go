package chart

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
)

// written is what [AreasJSON] writes. A number that cannot be drawn is null.
type written struct {
	Tail   string     `json:"tail"`
	Size   [2]float64 `json:"size"`
	Page   bool       `json:"page"`
	Charts []struct {
		Title  string     `json:"title"`
		Unit   string     `json:"unit"`
		Box    [4]float64 `json:"box"`
		Data   [4]float64 `json:"data"`
		X      []*float64 `json:"x"`
		Y      []*float64 `json:"y"`
		Whole  bool       `json:"whole"`
		Smooth bool       `json:"smooth"`
		Dots   bool       `json:"dots"`
		Lines  []struct {
			Name   string     `json:"name"`
			Color  string     `json:"color"`
			Points []*float64 `json:"points"`
		} `json:"lines"`
		Marks []struct {
			Text  string     `json:"text"`
			Color string     `json:"color"`
			Bar   bool       `json:"bar"`
			At    []*float64 `json:"at"`
		} `json:"marks"`
		Grid *struct {
			Rows     []string `json:"rows"`
			Columns  []string `json:"columns"`
			RowLabel string   `json:"rowLabel"`
			ColLabel string   `json:"colLabel"`
			Cells    []any    `json:"cells"` // numbers or texts
		} `json:"grid,omitempty"`
	} `json:"charts"`
}

// isColor reports whether s is what hex returns.
func isColor(s string) bool {
	return len(s) == len("#rrggbb") && s[0] == '#' && strings.Trim(s[1:], "0123456789abcdef") == ""
}

// Checked returns charts that were read from a file if they are what [AreasJSON] writes, and "" otherwise. The page's script
// computes with their numbers and puts their colours into styles.
func Checked(charts string) string {
	dec := json.NewDecoder(bytes.NewReader([]byte(charts)))
	dec.DisallowUnknownFields()
	var w written
	if dec.Decode(&w) != nil {
		return ""
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) { // something follows
		return ""
	}
	for _, c := range w.Charts {
		for _, l := range c.Lines {
			if !isColor(l.Color) || len(l.Points)%2 != 0 {
				return ""
			}
		}
		for _, m := range c.Marks {
			if !isColor(m.Color) || len(m.At)%2 != 0 {
				return ""
			}
		}
		cell := func(v any) bool {
			switch v.(type) {
			case nil, float64, string:
				return false
			}
			return true
		}
		if g := c.Grid; len(c.X) != 2 || len(c.Y) != 2 ||
			g != nil && (len(g.Cells) != len(g.Rows)*len(g.Columns) || slices.ContainsFunc(g.Cells, cell)) {
			return ""
		}
	}
	return charts
}
