package phrase

import "testing"

func TestPhrases(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Count(0, "step"), "0 steps"},
		{Count(1, "step"), "1 step"},
		{Count(2, "step"), "2 steps"},
		{List(nil), ""},
		{List([]string{"a"}), "a"},
		{List([]string{"a", "b"}), "a and b"},
		{List([]string{"a", "b", "c"}), "a, b and c"},
		{Clauses(nil), ""},
		{Clauses([]string{"a", "b", "c", "d", "e"}), "a; b; c; d; e"},
		{Clauses([]string{"a", "b", "c", "d", "e", "f"}), "a; b; c; d; and 2 more"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
