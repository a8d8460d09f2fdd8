package codeid

import (
	"go/scanner"
	"go/token"
	"hash"
)

// writeTokens writes the tokens of a piece of source, without comments, so that two pieces give the
// same bytes if and only if gofmt could turn one into the other: semicolons implied by line breaks
// are written explicitly, and semicolons and commas that a closing bracket makes redundant are left
// out. (Package go/printer is unsuitable: it keeps the line breaks of argument lists and literals.)
func writeTokens(h hash.Hash, src []byte) {
	var s scanner.Scanner
	set := token.NewFileSet()
	s.Init(set.AddFile("", set.Base(), len(src)), src, func(token.Position, string) {}, 0)
	out := make([]byte, 0, len(src)+len(src)/2)
	write := func(s string) { out = append(append(out, s...), 0) }
	var held token.Token // a semicolon or comma that may turn out to be redundant
	for {
		_, tok, lit := s.Scan()
		switch tok {
		case token.RPAREN, token.RBRACE, token.RBRACK, token.EOF:
			held = 0
		}
		if held != 0 {
			write(held.String())
			held = 0
		}
		switch tok {
		case token.EOF:
			h.Write(out)
			return
		case token.SEMICOLON, token.COMMA:
			held = tok
			continue
		}
		if !tok.IsLiteral() {
			lit = tok.String()
		}
		write(lit)
	}
}
