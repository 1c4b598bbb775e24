package handlers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Bounds on the text of an amount (resource.Quantity). Amounts have arbitrary
// precision and are computed digit by digit: an exponent like 1e99999999 keeps
// a CPU busy for hours, here and wherever the object is read. No real amount
// needs more; the largest that is stored is 2^63.
const (
	maxAmountExponent = 99
	maxAmountText     = 256
	maxSuffix         = 2 // Ki, m: a longer suffix that is no exponent makes it no amount
)

// amountFields are the JSON fields that hold amounts, or maps of them.
var amountFields = map[string]bool{
	"limits": true, "requests": true, "overhead": true, "capacity": true, "allocatable": true,
	"allocatedResources": true, "sizeLimit": true, "divisor": true,
}

func amountRefused(text []byte) error {
	return apierrors.NewBadRequest(fmt.Sprintf("quantity %q is out of range: exponents up to %d and %d characters are taken", text[:min(len(text), 32)], maxAmountExponent, maxAmountText))
}

// checkJSONAmounts refuses a body with an amount beyond the bounds. Hardly any
// body contains text that looks like one; only such bodies are examined
// closely.
func checkJSONAmounts(body []byte) error {
	// Digits may also be written as \u0030 to \u0039.
	if !mayHoldHugeAmount(body) && !bytes.Contains(body, []byte(`\u00`)) {
		return nil
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return nil // the decoder says what is wrong
	}
	return checkValue(value, false)
}

func checkValue(value any, amount bool) error {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			if err := checkValue(item, amount || amountFields[key]); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := checkValue(item, amount); err != nil {
				return err
			}
		}
	case string:
		if amount && isHugeAmount([]byte(v)) {
			return amountRefused([]byte(v))
		}
	case json.Number:
		if amount && isHugeAmount([]byte(v)) {
			return amountRefused([]byte(v))
		}
	}
	return nil
}

// checkProtobufAmounts is the same for protobuf, where an amount is a message
// whose first field is its text, and nothing else distinguishes it.
func checkProtobufAmounts(message []byte) error {
	if !mayHoldHugeAmount(message) {
		return nil
	}
	_, err := walkMessage(message, 0)
	return err
}

// maxMessageDepth is deeper than any object is.
const maxMessageDepth = 64

// walkMessage examines the first field of every message in data; ok reports
// whether data can be read as a message at all.
func walkMessage(data []byte, depth int) (ok bool, err error) {
	if depth == maxMessageDepth {
		return true, nil
	}
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return false, nil
		}
		data = data[n:]
		size := protowire.ConsumeFieldValue(number, kind, data)
		if size < 0 {
			return false, nil
		}
		if kind == protowire.BytesType {
			field, _ := protowire.ConsumeBytes(data)
			if number == 1 && isHugeAmount(field) {
				return true, amountRefused(field)
			}
			if mayHoldHugeAmount(field) {
				if _, err := walkMessage(field, depth+1); err != nil {
					return true, err
				}
			}
		}
		data = data[size:]
	}
	return true, nil
}

// isHugeAmount reports whether text is a number beyond the bounds.
func isHugeAmount(text []byte) bool {
	text = bytes.TrimSpace(text)
	digits := bytes.TrimLeft(text, "+-")
	mantissa := len(digits) - len(bytes.TrimLeft(digits, ".0123456789"))
	if mantissa == 0 {
		return false
	}
	rest := digits[mantissa:]
	if len(text) > maxAmountText && len(rest) <= maxSuffix {
		return true
	}
	if len(rest) == 0 || rest[0] != 'e' && rest[0] != 'E' {
		return false
	}
	exponent := bytes.TrimLeft(bytes.TrimLeft(rest[1:], "+-"), "0")
	return len(exponent) > 2 && isDigits(exponent)
}

// mayHoldHugeAmount reports whether data contains an exponent of three digits,
// or a number as long as the bound.
func mayHoldHugeAmount(data []byte) bool {
	run := 0
	for i, b := range data {
		switch {
		case isDigit(b) || b == '.':
			if run++; run > maxAmountText-8 {
				return true
			}
			continue
		case run > 0 && (b == 'e' || b == 'E'):
			exponent := bytes.TrimLeft(data[i+1:min(i+maxAmountText, len(data))], "+-")
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
