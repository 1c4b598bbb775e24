package jsonpath

import (
	"fmt"
	"strconv"
	"strings"
)

// Path is a compiled path. It is safe for concurrent use.
type Path struct{ steps []step }

// step is one step from values to values below them.
type step interface {
	selectFrom(value any, found []any) []any
}

// maxSteps bounds the work of one path.
const maxSteps = 64

// Compile compiles a path that begins with a dot or a bracket: ".spec.replicas".
func Compile(text string) (*Path, error) {
	p := &parser{text: text}
	steps, err := p.steps()
	if err != nil {
		return nil, fmt.Errorf("path %q: %w", text, err)
	}
	return &Path{steps}, nil
}

type parser struct {
	text   string
	offset int
}

func (p *parser) rest() string { return p.text[p.offset:] }

func (p *parser) steps() ([]step, error) {
	var out []step
	for p.offset < len(p.text) {
		if len(out) == maxSteps {
			return nil, fmt.Errorf("more than %d steps", maxSteps)
		}
		var one step
		var err error
		switch {
		case strings.HasPrefix(p.rest(), ".."):
			p.offset += 2
			out = append(out, recursiveDescent{})
			if strings.HasPrefix(p.rest(), "[") {
				continue
			}
			one, err = p.name()
		case p.text[p.offset] == '.':
			p.offset++
			if strings.HasPrefix(p.rest(), "[") || p.offset == len(p.text) {
				continue
			}
			one, err = p.name()
		case p.text[p.offset] == '[':
			one, err = p.bracket()
		default:
			return nil, fmt.Errorf("unexpected %q", p.rest())
		}
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// name reads a plain name up to the next step. A backslash escapes the next
// character.
func (p *parser) name() (step, error) {
	var name strings.Builder
	for p.offset < len(p.text) {
		c := p.text[p.offset]
		if c == '\\' && p.offset+1 < len(p.text) {
			name.WriteByte(p.text[p.offset+1])
			p.offset += 2
			continue
		}
		if c == '.' || c == '[' {
			break
		}
		name.WriteByte(c)
		p.offset++
	}
	switch name.String() {
	case "":
		return nil, fmt.Errorf("a name is missing at %q", p.rest())
	case "*":
		return wildcard{}, nil
	}
	return memberNames{name.String()}, nil
}

// bracket reads the content of brackets.
func (p *parser) bracket() (step, error) {
	end := closingBracket(p.rest())
	if end < 0 {
		return nil, fmt.Errorf("a bracket is not closed")
	}
	inside := strings.TrimSpace(p.rest()[1:end])
	p.offset += end + 1
	switch {
	case inside == "*":
		return wildcard{}, nil
	case inside == "": // as client-go's parser reads it
		return indexes{0}, nil
	case strings.HasPrefix(inside, "?(") && strings.HasSuffix(inside, ")"):
		return parseFilter(inside[2 : len(inside)-1])
	case inside != "" && (inside[0] == '\'' || inside[0] == '"'):
		return quotedNames(inside)
	}
	if strings.Contains(inside, ":") {
		return parseRange(inside)
	}
	var out indexes
	for part := range strings.SplitSeq(inside, ",") {
		i, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("%q is not an index", part)
		}
		out = append(out, i)
	}
	return out, nil
}

// closingBracket finds the bracket that closes the one that text begins with.
func closingBracket(text string) int {
	depth, quote := 0, byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '[':
			depth++
		case c == ']':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

func quotedNames(text string) (step, error) {
	var out memberNames
	for text = strings.TrimSpace(text); text != ""; {
		name, rest, err := unquote(text)
		if err != nil {
			return nil, err
		}
		out = append(out, name)
		rest = strings.TrimSpace(rest)
		if rest != "" && rest[0] != ',' {
			return nil, fmt.Errorf("unexpected %q", rest)
		}
		text = strings.TrimSpace(strings.TrimPrefix(rest, ","))
	}
	return out, nil
}

func unquote(text string) (value, rest string, err error) {
	quote := text[0]
	var out strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			out.WriteByte(text[i])
		case c == quote:
			return out.String(), text[i+1:], nil
		default:
			out.WriteByte(c)
		}
	}
	return "", "", fmt.Errorf("a quote is not closed: %q", text)
}

func parseRange(text string) (step, error) {
	var out slice
	for i, part := range strings.SplitN(text, ":", 3) {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, fmt.Errorf("%q is not an index", part)
		}
		out[i] = &n
	}
	if out[2] != nil && *out[2] <= 0 {
		return nil, fmt.Errorf("the step of a slice is positive")
	}
	return out, nil
}

// operators, longer ones first.
var operators = []string{"==", "!=", "<=", ">=", "<", ">"}

// parseFilter reads "@.type=="Ready"", or "@.type" alone, which tests whether
// it exists.
func parseFilter(text string) (step, error) {
	left, operator, right := text, "", ""
	quote := byte(0)
search:
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
		case c == '\'' || c == '"':
			quote = c
		default:
			for _, one := range operators {
				if strings.HasPrefix(text[i:], one) {
					left, operator, right = text[:i], one, text[i+len(one):]
					break search
				}
			}
		}
	}
	f := filter{operator: operator}
	var err error
	if f.left, err = parseOperand(left); err != nil {
		return nil, err
	}
	if operator != "" {
		f.right, err = parseOperand(right)
	}
	return f, err
}

func parseOperand(text string) (operand, error) {
	text = strings.TrimSpace(text)
	if rest, ok := strings.CutPrefix(text, "@"); ok {
		path, err := Compile(rest)
		return operand{path: path}, err
	}
	switch {
	case text == "":
		return operand{}, fmt.Errorf("a filter lacks a side")
	case text[0] == '\'' || text[0] == '"':
		value, rest, err := unquote(text)
		if err == nil && strings.TrimSpace(rest) != "" {
			err = fmt.Errorf("unexpected %q", rest)
		}
		return operand{value: value}, err
	case text == "true" || text == "false":
		return operand{value: text == "true"}, nil
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return operand{}, fmt.Errorf("%q is not a value", text)
	}
	return operand{value: number}, nil
}
