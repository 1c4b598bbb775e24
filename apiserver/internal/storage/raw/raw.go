package raw

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// errMalformed: the bytes are not a JSON object of the expected form.
var errMalformed = errors.New("malformed JSON object")

// VersionLength is the number of bytes by which setting a resourceVersion
// lengthens an object that has metadata, at most.
const VersionLength = len(`"resourceVersion":"",`) + 20

// SetResourceVersion returns a copy of object whose metadata.resourceVersion is
// revision.
func SetResourceVersion(object []byte, revision int64) ([]byte, error) {
	return AppendWithResourceVersion(make([]byte, 0, len(object)+VersionLength), object, revision)
}

// AppendWithResourceVersion appends object, with metadata.resourceVersion set
// to revision, to dst.
func AppendWithResourceVersion(dst, object []byte, revision int64) ([]byte, error) {
	top, meta, err := metadata(object)
	if err != nil {
		return nil, err
	}
	if isNull(object, meta) {
		dst = append(dst, object[:meta.start]...)
		dst = append(dst, '{')
		dst = appendVersion(dst, revision)
		dst = append(dst, '}')
		return append(dst, object[meta.end:]...), nil
	}
	if !meta.found() {
		dst = append(dst, object[:top+1]...)
		dst = append(dst, `"metadata":{`...)
		dst = appendVersion(dst, revision)
		dst = append(dst, '}')
		return appendMembers(dst, object, top+1)
	}
	version, err := member(object, meta.start, "resourceVersion")
	if err != nil {
		return nil, err
	}
	if !version.found() {
		dst = append(dst, object[:meta.start+1]...)
		dst = appendVersion(dst, revision)
		return appendMembers(dst, object, meta.start+1)
	}
	dst = append(dst, object[:version.start]...)
	dst = append(dst, '"')
	dst = strconv.AppendInt(dst, revision, 10)
	dst = append(dst, '"')
	return append(dst, object[version.end:]...), nil
}

// AppendNewResourceVersion is AppendWithResourceVersion for an object that is
// known to have no resourceVersion: it looks at nothing beyond the place where
// that goes.
func AppendNewResourceVersion(dst, object []byte, revision int64) ([]byte, error) {
	top := SkipSpace(object, 0)
	at, err := memberStart(object, top, "metadata")
	if err != nil {
		return nil, err
	}
	if at == 0 || object[at] != '{' {
		return AppendWithResourceVersion(dst, object, revision)
	}
	dst = append(dst, object[:at+1]...)
	dst = appendVersion(dst, revision)
	return appendMembers(dst, object, at+1)
}

func appendVersion(dst []byte, revision int64) []byte {
	dst = append(dst, `"resourceVersion":"`...)
	dst = strconv.AppendInt(dst, revision, 10)
	return append(dst, '"')
}

// appendMembers appends object from position i, which follows a '{', with a
// comma first if members follow.
func appendMembers(dst, object []byte, i int) ([]byte, error) {
	next := SkipSpace(object, i)
	if next >= len(object) {
		return nil, errMalformed
	}
	if object[next] != '}' {
		dst = append(dst, ',')
	}
	return append(dst, object[next:]...), nil
}

// SameButVersion reports whether object without metadata.resourceVersion equals
// value: what SetResourceVersion was given, if that had none.
func SameButVersion(object, value []byte) (bool, error) {
	head, tail, err := aroundVersion(object)
	if err != nil || len(head)+len(tail) != len(value) {
		return false, err
	}
	return bytes.Equal(head, value[:len(head)]) && bytes.Equal(tail, value[len(head):]), nil
}

// aroundVersion returns what precedes metadata.resourceVersion and its comma, and
// what follows; all of object if it has none.
func aroundVersion(object []byte) (head, tail []byte, err error) {
	_, meta, err := metadata(object)
	if err != nil || !meta.found() || isNull(object, meta) {
		return object, nil, err
	}
	version, err := member(object, meta.start, "resourceVersion")
	if err != nil || !version.found() {
		return object, nil, err
	}
	if next := SkipSpace(object, version.end); object[next] == ',' {
		return object[:version.key], object[SkipSpace(object, next+1):], nil
	}
	// It is the last member: the comma before it goes, too.
	before := bytes.TrimRight(object[:version.key], " \t\r\n")
	return bytes.TrimSuffix(before, []byte(",")), object[version.end:], nil
}

// Check returns an error unless the bytes are one JSON object. The other functions read no
// further than they have to, and would hand on what is broken behind that.
func Check(object []byte) error {
	// What upstream's decoder takes: the names of labels may be double, and texts any bytes.
	if i := SkipSpace(object, 0); i < len(object) && object[i] == '{' &&
		jsontext.Value(object).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		return nil
	}
	return errMalformed
}

// APIVersion returns the object's version as it is written, without a copy; nil if there
// is none.
func APIVersion(object []byte) []byte {
	version, err := member(object, SkipSpace(object, 0), "apiVersion")
	if err != nil || !version.found() || object[version.start] != '"' {
		return nil
	}
	return object[version.start+1 : version.end-1]
}

// Labels returns metadata.labels, nil if there are none.
func Labels(object []byte) (map[string]string, error) {
	_, meta, err := metadata(object)
	if err != nil || !meta.found() || isNull(object, meta) {
		return nil, err
	}
	labels, err := member(object, meta.start, "labels")
	if err != nil || !labels.found() {
		return nil, err
	}
	var out map[string]string
	if err := json.Unmarshal(object[labels.start:labels.end], &out); err != nil {
		return nil, fmt.Errorf("metadata.labels: %w", err)
	}
	return out, nil
}

// metadata finds the object's opening brace and its metadata member, which must
// be an object or null if it exists.
func metadata(object []byte) (top int, meta span, err error) {
	top = SkipSpace(object, 0)
	meta, err = member(object, top, "metadata")
	if err == nil && meta.found() && object[meta.start] != '{' && !isNull(object, meta) {
		err = fmt.Errorf("%w: metadata is no object", errMalformed)
	}
	return top, meta, err
}

// isNull reports whether a member is there and null.
func isNull(object []byte, s span) bool {
	return s.found() && string(object[s.start:s.end]) == "null"
}
