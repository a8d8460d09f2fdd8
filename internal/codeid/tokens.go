package codeid

import (
	"go/scanner"
	"go/token"
	"hash"
	"io"
)

// writeTokens writes the tokens of a piece of source, without comments, so that two
// pieces give the same bytes if and only if gofmt could make one of the other: semicolons
// that line breaks stand for are written as such, and those, like commas, that a closing
// bracket makes superfluous are left out. (Package go/printer would not do: it keeps the
// line breaks of argument lists and literals.)
func writeTokens(h hash.Hash, src []byte) {
	var s scanner.Scanner
	set := token.NewFileSet()
	s.Init(set.AddFile("", set.Base(), len(src)), src, func(token.Position, string) {}, 0)
	var held token.Token // a semicolon or comma of which it is not known yet whether it counts
	for {
		_, tok, lit := s.Scan()
		switch tok {
		case token.RPAREN, token.RBRACE, token.RBRACK, token.EOF:
			held = 0
		}
		if held != 0 {
			_, _ = io.WriteString(h, held.String()+"\x00")
			held = 0
		}
		switch tok {
		case token.EOF:
			return
		case token.SEMICOLON, token.COMMA:
			held = tok
			continue
		}
		if !tok.IsLiteral() {
			lit = tok.String()
		}
		_, _ = io.WriteString(h, lit+"\x00")
	}
}
