package quantity

import (
	"bytes"
	"fmt"
	"slices"
)

// Bounds on the text of a quantity. No real one needs more; the largest that is
// stored is 2^63.
const (
	maxExponent = 99
	maxText     = 256
)

// maxSuffix is the length of Ki and m: a longer suffix that is no exponent makes
// a text no quantity.
const maxSuffix = 2

// Refusal says that a quantity is beyond the bounds.
func Refusal(text []byte) string {
	return fmt.Sprintf("quantity %q is out of range: at most an exponent of %d and %d characters are accepted",
		text[:min(len(text), 32)], maxExponent, maxText)
}

// Huge reports whether text is a number beyond the bounds.
func Huge(text []byte) bool {
	text = bytes.TrimSpace(text)
	digits := bytes.TrimLeft(text, "+-")
	mantissa := len(digits) - len(bytes.TrimLeft(digits, ".0123456789"))
	if mantissa == 0 {
		return false
	}
	rest := digits[mantissa:]
	hasExponent := len(rest) > 0 && (rest[0] == 'e' || rest[0] == 'E')
	if len(text) > maxText && len(rest) <= maxSuffix || mantissa > maxText && hasExponent {
		return true
	}
	if !hasExponent {
		return false
	}
	exponent := bytes.TrimLeft(bytes.TrimLeft(rest[1:], "+-"), "0")
	return len(exponent) > 2 && isDigits(exponent)
}

// MayBeIn reports whether data contains text like a huge number: an exponent of three
// digits, or a number as long as the bound. Hardly any does; only such data has to be
// examined closely.
func MayBeIn(data []byte) bool {
	run := 0
	for i, b := range data {
		switch {
		case isDigit(b) || b == '.':
			if run++; run > maxText-8 {
				return true
			}
			continue
		case run > 0 && (b == 'e' || b == 'E'):
			exponent := bytes.TrimLeft(data[i+1:min(i+maxText, len(data))], "+-")
			if exponent = bytes.TrimLeft(exponent, "0"); len(exponent) > 2 && isDigits(exponent[:3]) || len(exponent) == 0 {
				return true
			}
		}
		run = 0
	}
	return false
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

func isDigits(text []byte) bool {
	return !slices.ContainsFunc(text, func(b byte) bool { return !isDigit(b) })
}
