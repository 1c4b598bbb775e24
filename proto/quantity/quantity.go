// Package quantity knows which texts of quantities (resource.Quantity) are too dear to
// compute.
//
// Quantities have arbitrary precision and are computed digit by digit: an exponent
// like 1e99999999 keeps a CPU busy for hours, here and wherever the quantity is read.
// Ask it before parsing what clients send. It parses nothing itself.
package quantity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Bounds on the text of a quantity. No real one needs more; the largest that is
// stored is 2^63.
const (
	MaxExponent = 99
	MaxText     = 256
)

// maxSuffix is the length of Ki and m: a longer suffix that is no exponent makes
// a text no quantity.
const maxSuffix = 2

// Refusal says that a quantity is beyond the bounds.
func Refusal(text []byte) string {
	return fmt.Sprintf("quantity %q is out of range: exponents up to %d and %d characters are taken", text[:min(len(text), 32)], MaxExponent, MaxText)
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
	if len(text) > MaxText && len(rest) <= maxSuffix || mantissa > MaxText && hasExponent {
		return true
	}
	if !hasExponent {
		return false
	}
	exponent := bytes.TrimLeft(bytes.TrimLeft(rest[1:], "+-"), "0")
	return len(exponent) > 2 && !slices.ContainsFunc(exponent, func(b byte) bool { return b < '0' || b > '9' })
}

// fields are the JSON fields that hold quantities, or maps of them.
var fields = map[string]bool{
	"limits": true, "requests": true, "overhead": true, "capacity": true, "allocatable": true,
	"allocatedResources": true, "sizeLimit": true, "divisor": true,
}

// FindHuge finds a number beyond the bounds in the quantities of an object that was
// decoded from JSON, the same each time. Its numbers must be json.Numbers.
func FindHuge(object any) (text string, found bool) { return findHuge(object, false) }

func findHuge(value any, isQuantity bool) (text string, found bool) {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			if one, huge := findHuge(item, isQuantity || fields[key]); huge && (!found || one < text) {
				text, found = one, true
			}
		}
		return text, found
	case []any:
		for _, item := range v {
			if text, found = findHuge(item, isQuantity); found {
				return text, true
			}
		}
	case string:
		return v, isQuantity && Huge([]byte(v))
	case json.Number:
		return v.String(), isQuantity && Huge([]byte(v))
	}
	return "", false
}
