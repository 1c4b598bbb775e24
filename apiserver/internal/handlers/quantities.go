package handlers

import (
	"google.golang.org/protobuf/encoding/protowire"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"kctl/proto/quantity"
)

// checkJSONQuantities refuses a body, which will be decoded into an object, with a quantity
// beyond the bounds.
func checkJSONQuantities(body []byte, into runtime.Object) error {
	if err := quantity.Check(body, into); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// checkProtobufQuantities is the same for protobuf, where a quantity is a message
// whose first field is its text, and nothing else distinguishes it.
func checkProtobufQuantities(message []byte) error {
	if !quantity.MayBeIn(message) {
		return nil
	}
	return checkMessage(message, 0)
}

// maxMessageDepth is deeper than any object is.
const maxMessageDepth = 64

// checkMessage examines the first field of every message in data, which may be
// text as well: what can't be read as a message has no quantities.
func checkMessage(data []byte, depth int) error {
	if depth == maxMessageDepth {
		return nil
	}
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return nil
		}
		data = data[n:]
		size := protowire.ConsumeFieldValue(number, kind, data)
		if size < 0 {
			return nil
		}
		if kind == protowire.BytesType {
			field, _ := protowire.ConsumeBytes(data)
			if number == 1 && quantity.Huge(field) {
				return apierrors.NewBadRequest(quantity.Refusal(field))
			}
			if quantity.MayBeIn(field) {
				if err := checkMessage(field, depth+1); err != nil {
					return err
				}
			}
		}
		data = data[size:]
	}
	return nil
}
