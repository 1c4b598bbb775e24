package structural

import (
	"regexp"
	"regexp/syntax"
	"sync"
)

// mostSteps bounds the length of the compiled programs of all patterns in a schema. A
// step takes 40 bytes, and seven bytes of a pattern can become a thousand of them; Go
// allows one pattern some three million.
const mostSteps = 8 << 20

// parsePattern parses a regular expression as regexp.Compile does; the rest of that
// function, which takes most of the time and memory, can't fail.
func parsePattern(text string) (*syntax.Regexp, error) {
	return syntax.Parse(text, syntax.Perl)
}

// pattern compiles text, which has been parsed, when the first value is matched: most
// patterns of a cluster's schemas are never used.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// steps is the approximate length of an expression's program; more than mostSteps if
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
