package handlers

import (
	"bytes"
	"reflect"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/proto/quantity"
)

func quantityOutOfRange(text []byte) error { return apierrors.NewBadRequest(quantity.Refusal(text)) }

// checkJSONQuantities refuses a body, which will be decoded into an object, with a quantity
// beyond the bounds. Hardly any body contains text that looks like one; only such bodies are
// examined closely.
func checkJSONQuantities(body []byte, into runtime.Object) error {
	// Digits may also be written as \u0030 to \u0039.
	if !mayContainHugeQuantity(body) && !bytes.Contains(body, []byte(`\u00`)) {
		return nil
	}
	as := reflect.TypeOf(into)
	if _, ok := into.(*unstructured.Unstructured); ok {
		as = nil
	}
	if text, found := quantity.FindHuge(body, as); found {
		return quantityOutOfRange([]byte(text))
	}
	return nil
}

// checkProtobufQuantities is the same for protobuf, where a quantity is a message
// whose first field is its text, and nothing else distinguishes it.
func checkProtobufQuantities(message []byte) error {
	if !mayContainHugeQuantity(message) {
		return nil
	}
	_, err := checkMessage(message, 0)
	return err
}

// maxMessageDepth is deeper than any object is.
const maxMessageDepth = 64

// checkMessage examines the first field of every message in data; ok reports
// whether data can be read as a message at all.
func checkMessage(data []byte, depth int) (ok bool, err error) {
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
			if number == 1 && quantity.Huge(field) {
				return true, quantityOutOfRange(field)
			}
			if mayContainHugeQuantity(field) {
				if _, err := checkMessage(field, depth+1); err != nil {
					return true, err
				}
			}
		}
		data = data[size:]
	}
	return true, nil
}

// mayContainHugeQuantity reports whether data contains an exponent of three digits,
// or a number as long as the bound.
func mayContainHugeQuantity(data []byte) bool {
	run := 0
	for i, b := range data {
		switch {
		case isDigit(b) || b == '.':
			if run++; run > quantity.MaxText-8 {
				return true
			}
			continue
		case run > 0 && (b == 'e' || b == 'E'):
			exponent := bytes.TrimLeft(data[i+1:min(i+quantity.MaxText, len(data))], "+-")
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
