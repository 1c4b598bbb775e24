package raw

import "bytes"

// span is where a member of an object stands: its key from key, its value from
// start up to end. The zero span is none.
type span struct{ key, start, end int }

func (s span) found() bool { return s.end > 0 }

// member finds the member called name of the object that opens at position i.
// Keys written with escapes are not recognised; no encoder writes them.
func member(b []byte, i int, name string) (span, error) {
	if i >= len(b) || b[i] != '{' {
		return span{}, ErrMalformed
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return span{}, nil
	}
	for {
		key := i
		end, err := skipString(b, key)
		if err != nil {
			return span{}, err
		}
		i = skipSpace(b, end)
		if i >= len(b) || b[i] != ':' {
			return span{}, ErrMalformed
		}
		start := skipSpace(b, i+1)
		i, err = skipValue(b, start)
		if err != nil {
			return span{}, err
		}
		if string(b[key+1:end-1]) == name {
			return span{key: key, start: start, end: i}, nil
		}
		i = skipSpace(b, i)
		switch {
		case i < len(b) && b[i] == '}':
			return span{}, nil
		case i < len(b) && b[i] == ',':
			i = skipSpace(b, i+1)
		default:
			return span{}, ErrMalformed
		}
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the position behind the string that opens at i.
func skipString(b []byte, i int) (int, error) {
	if i >= len(b) || b[i] != '"' {
		return 0, ErrMalformed
	}
	i++
	for {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return 0, ErrMalformed
		}
		i += n
		escapes := 0
		for b[i-1-escapes] == '\\' {
			escapes++
		}
		i++
		if escapes%2 == 0 {
			return i, nil
		}
	}
}

// skipValue returns the position behind the value that starts at i.
func skipValue(b []byte, i int) (int, error) {
	if i >= len(b) {
		return 0, ErrMalformed
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNested(b, i)
	}
	start := i
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
		i++
	}
	if i == start {
		return 0, ErrMalformed
	}
	return i, nil
}

// skipNested returns the position behind the object or array that opens at i.
func skipNested(b []byte, i int) (int, error) {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			end, err := skipString(b, i)
			if err != nil {
				return 0, err
			}
			i = end
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1, nil
			}
		}
		i++
	}
	return 0, ErrMalformed
}
