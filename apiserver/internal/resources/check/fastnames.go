package check

import "strings"

// Nearly every name is valid, and checking that by regular expressions takes
// longer than all other validation of an object. These functions quickly
// recognise valid names; everything else is left to upstream's functions, whose
// messages users know.

const (
	maxLabel     = 63
	maxSubdomain = 253
)

// isDNSSubdomain reports whether name is a DNS-1123 subdomain.
func isDNSSubdomain(name string) bool {
	if len(name) > maxSubdomain {
		return false
	}
	before := byte('.') // the byte before
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

// isDNSLabel reports whether name is a DNS-1123 label.
func isDNSLabel(name string) bool {
	return len(name) <= maxLabel && !strings.Contains(name, ".") && isDNSSubdomain(name)
}

// isLabelKey reports whether name is a label key: a name, optionally after a
// subdomain and a slash.
func isLabelKey(name string) bool {
	if prefix, rest, ok := strings.Cut(name, "/"); ok {
		return isDNSSubdomain(prefix) && isLabelName(rest)
	}
	return isLabelName(name)
}

// isLabelName reports whether name is valid as the name part of a label key.
func isLabelName(name string) bool {
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
