package core

import (
	"errors"
	"reflect"

	fast "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	kjson "sigs.k8s.io/json"
)

// Decode reads JSON into the empty object that into points to, as client-go and
// API servers do: names are told apart by case, fields that are not known are passed
// over. Nearly all that is read was encoded by a server, and has no name twice: a
// quicker decoder reads that as sigs.k8s.io/json does, and what it refuses is read
// again, so that errors and oddities are the slower one's. It is not for what a
// client sent: of elements that are there twice, the two keep different parts.
func Decode(data []byte, into any) error {
	if fast.Unmarshal(data, into, jsontext.AllowDuplicateNames(true)) == nil {
		return nil
	}
	reflect.ValueOf(into).Elem().SetZero()
	return kjson.UnmarshalCaseSensitivePreserveInts(data, into)
}

// DecodeStrict reads JSON into an object as an API server does that is asked to be
// strict: names are told apart by case, and fields that are not known, or there
// twice, are errors, all of which are told.
func DecodeStrict(data []byte, into any) error {
	strict, err := kjson.UnmarshalStrict(data, into)
	if err != nil {
		return err
	}
	return errors.Join(strict...)
}
