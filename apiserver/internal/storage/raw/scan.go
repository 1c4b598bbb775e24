package raw

import "bytes"

// span is the position of an object's member: its key begins at key, its value
// goes from start up to end. The zero span is none.
type span struct{ key, start, end int }

func (s span) found() bool { return s.end > 0 }

// member finds the member called name of the object that opens at position i.
// Keys written with escapes are not recognised; no encoder writes them.
func member(b []byte, i int, name string) (span, error) {
	key, start, err := find(b, i, name)
	if err != nil || start == 0 {
		return span{}, err
	}
	end, err := SkipValue(b, start)
	if err != nil {
		return span{}, err
	}
	return span{key: key, start: start, end: end}, nil
}

// memberStart is where the value of a member begins; 0 if there is no such
// member. The value may be malformed.
func memberStart(b []byte, i int, name string) (int, error) {
	_, start, err := find(b, i, name)
	if err == nil && start >= len(b) {
		return 0, errMalformed
	}
	return start, err
}

// find returns where the key and the value of a member begin; start is 0 if
// there is no such member.
func find(b []byte, i int, name string) (key, start int, err error) {
	if i >= len(b) || b[i] != '{' {
		return 0, 0, errMalformed
	}
	i = SkipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return 0, 0, nil
	}
	for {
		key = i
		end, err := SkipString(b, key)
		if err != nil {
			return 0, 0, err
		}
		i = SkipSpace(b, end)
		if i >= len(b) || b[i] != ':' {
			return 0, 0, errMalformed
		}
		start = SkipSpace(b, i+1)
		if string(b[key+1:end-1]) == name {
			return key, start, nil
		}
		if i, err = SkipValue(b, start); err != nil {
			return 0, 0, err
		}
		i = SkipSpace(b, i)
		switch {
		case i < len(b) && b[i] == '}':
			return 0, 0, nil
		case i < len(b) && b[i] == ',':
			i = SkipSpace(b, i+1)
		default:
			return 0, 0, errMalformed
		}
	}
}

// SkipSpace returns the position of what follows white space at i.
func SkipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// SkipString returns the position after the string that opens at i.
func SkipString(b []byte, i int) (int, error) {
	if i >= len(b) || b[i] != '"' {
		return 0, errMalformed
	}
	i++
	for {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return 0, errMalformed
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

// SkipValue returns the position after the value that starts at i.
func SkipValue(b []byte, i int) (int, error) {
	if i >= len(b) {
		return 0, errMalformed
	}
	switch b[i] {
	case '"':
		return SkipString(b, i)
	case '{', '[':
		return skipNested(b, i)
	}
	start := i
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
		i++
	}
	if i == start {
		return 0, errMalformed
	}
	return i, nil
}

// skipNested returns the position after the object or array that opens at i.
func skipNested(b []byte, i int) (int, error) {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			end, err := SkipString(b, i)
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
	return 0, errMalformed
}
