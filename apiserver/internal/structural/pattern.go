package structural

import (
	"regexp"
	"regexp/syntax"
	"sync"
)

// mostSteps is how long the programs of all patterns in a schema may be together. A step
// takes 40 bytes, and seven bytes of a pattern can be a thousand of them; Go lets one
// pattern have some three million.
const mostSteps = 8 << 20

// parsePattern reads a regular expression as regexp.Compile does, whose other half, which
// takes most of the time and memory, can't fail.
func parsePattern(text string) (*syntax.Regexp, error) {
	return syntax.Parse(text, syntax.Perl)
}

// pattern compiles text, which was parsed, when the first value is held against it: most
// patterns of a cluster's schemas wait for that for ever.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// steps is about how long the program of an expression is, and more than mostSteps where
// that is too long.
func steps(re *syntax.Regexp) int {
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpRepeat:
		return min((steps(re.Sub[0])+1)*max(re.Min, re.Max, 1), mostSteps+1)
	}
	sum := 1
	for _, sub := range re.Sub {
		sum = min(sum+steps(sub), mostSteps+1)
	}
	return sum
}
