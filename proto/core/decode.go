package core

import (
	"errors"
	"reflect"

	fast "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	kjson "sigs.k8s.io/json"
)

// Decode reads JSON into the empty object that into points to, as client-go and API
// servers do: field names are case-sensitive, and unknown fields are ignored. Nearly
// all input was encoded by a server and has no duplicate names. A quicker decoder
// reads such input exactly as sigs.k8s.io/json does; what it refuses is read again
// by the slower one, whose errors and oddities therefore count. Do not use it for
// what a client sent: where an element is there twice, the two decoders keep
// different parts.
func Decode(data []byte, into any) error {
	if fast.Unmarshal(data, into, jsontext.AllowDuplicateNames(true)) == nil {
		return nil
	}
	reflect.ValueOf(into).Elem().SetZero()
	return kjson.UnmarshalCaseSensitivePreserveInts(data, into)
}

// DecodeStrict reads JSON into an object as an API server does when asked to be
// strict: field names are case-sensitive, and unknown or duplicate fields are
// errors, all of which are reported.
func DecodeStrict(data []byte, into any) error {
	strict, err := kjson.UnmarshalStrict(data, into)
	if err != nil {
		return err
	}
	return errors.Join(strict...)
}
