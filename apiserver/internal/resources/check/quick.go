package check

import "strings"

// Nearly every name is right, and finding that out by regular expressions takes
// longer than all else that is checked of an object. These know at a glance what
// is right; whatever they are not sure of is for upstream's functions, whose
// words users know.

const (
	maxLabel     = 63
	maxSubdomain = 253
)

// plainSubdomain tells whether name is a DNS-1123 subdomain.
func plainSubdomain(name string) bool {
	if len(name) > maxSubdomain {
		return false
	}
	before := byte('.') // what stands before a byte
	for i := range len(name) {
		c := name[i]
		switch {
		case isLower(c) || isDigit(c):
		case c == '-' && before != '.':
		case c == '.' && before != '.' && before != '-':
		default:
			return false
		}
		before = c
	}
	return before != '.' && before != '-'
}

// plainLabel tells whether name is a DNS-1123 label.
func plainLabel(name string) bool {
	return len(name) <= maxLabel && !strings.Contains(name, ".") && plainSubdomain(name)
}

// plainKey tells whether name is a label key: a name, behind a subdomain and a
// slash perhaps.
func plainKey(name string) bool {
	if prefix, rest, ok := strings.Cut(name, "/"); ok {
		return plainSubdomain(prefix) && plainName(rest)
	}
	return plainName(name)
}

// plainName tells whether name is what stands last in a label key.
func plainName(name string) bool {
	if name == "" || len(name) > maxLabel || !isAlphanumeric(name[0]) || !isAlphanumeric(name[len(name)-1]) {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !isAlphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isAlphanumeric(c byte) bool { return isLower(c) || isDigit(c) || 'A' <= c && c <= 'Z' }
