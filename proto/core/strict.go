package core

import (
	"errors"

	kjson "sigs.k8s.io/json"
)

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
