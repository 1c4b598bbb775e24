package structural

import (
	"bytes"

	"kctl/apiserver/internal/storage/raw"
)

// form is how the JSON of a field of metadata looks.
type form struct {
	// begins is what it begins with: for a list, each of its elements.
	begins byte
	list   bool
	// time: it is a point in time. number: it begins with another digit than 0, or is 0 if that may be.
	time, number, zero bool
	// values: its fields are texts; fields: it has these.
	values bool
	fields map[string]form
}

var (
	aText = form{begins: '"'}
	aTime = form{begins: '"', time: true}
	aFlag = form{}
	texts = form{begins: '{', values: true}

	// metadataForms are those of metav1.ObjectMeta.
	metadataForms = map[string]form{
		"name": aText, "namespace": aText, "generateName": aText, "uid": aText, "resourceVersion": aText, "selfLink": aText,
		"creationTimestamp": aTime, "deletionTimestamp": aTime, "generation": {number: true},
		"deletionGracePeriodSeconds": {number: true, zero: true},
		"labels":                     texts, "annotations": texts, "finalizers": {begins: '"', list: true},
		"ownerReferences": {begins: '{', list: true, fields: map[string]form{
			"apiVersion": aText, "kind": aText, "name": aText, "uid": aText, "controller": aFlag, "blockOwnerDeletion": aFlag,
		}},
		"managedFields": {begins: '{', list: true, fields: map[string]form{
			"manager": aText, "operation": aText, "apiVersion": aText, "time": aTime, "fieldsType": aText, "subresource": aText,
			"fieldsV1": {begins: '{'},
		}},
	}
)

// metadata looks through the metadata at i like Repair. root: of the object itself, which has
// a generation.
func (c *settledCheck) metadata(i int, root bool) (end int, ok bool) {
	if !c.at(i, '{') {
		return 0, false
	}
	seen, versions := false, 0
	end, ok = c.members(i, true, func(key []byte, start int) (int, bool) {
		f, known := metadataForms[string(key)]
		switch string(key) {
		case "generation":
			seen = true
		case "resourceVersion":
			versions++
		}
		if !known || versions > 1 {
			return 0, false
		}
		return c.form(start, f)
	})
	return end, ok && (seen || !root)
}

// members calls f for each member of the object at i, whose names have to be sorted. versioned: what
// storage has read has its resourceVersion in front of them.
func (c *settledCheck) members(i int, versioned bool, f func(key []byte, start int) (end int, ok bool)) (end int, ok bool) {
	if i = raw.SkipSpace(c.text, i+1); c.at(i, '}') {
		return i + 1, true
	}
	for last := []byte(nil); ; {
		key, start, ok := c.key(i)
		if !ok || last != nil && bytes.Compare(key, last) <= 0 {
			return 0, false
		}
		if versioned && last == nil && string(key) == "resourceVersion" {
			versioned = false
		} else {
			last = key
		}
		if i, ok = f(key, start); !ok {
			return 0, false
		}
		if i, ok = c.next(i); !ok {
			return i + 1, c.at(i, '}')
		}
	}
}

func (c *settledCheck) form(i int, f form) (end int, ok bool) {
	if !f.list {
		return c.one(i, f)
	}
	if !c.at(i, '[') {
		return 0, false
	}
	for i = raw.SkipSpace(c.text, i+1); ; { // empty ones are left out
		if i, ok = c.one(i, f); !ok {
			return 0, false
		}
		if i, ok = c.next(i); !ok {
			return i + 1, c.at(i, ']')
		}
	}
}

// one is what is not a list, or an element of one.
func (c *settledCheck) one(i int, f form) (end int, ok bool) {
	switch {
	case f.number:
		if i >= len(c.text) || (c.text[i] < '1' || c.text[i] > '9') && !(f.zero && c.text[i] == '0') {
			return 0, false
		}
	case f.begins == 0:
		if !c.at(i, 't') && !c.at(i, 'f') { // true, false
			return 0, false
		}
	case !c.at(i, f.begins):
		return 0, false
	}
	switch {
	case f.values:
		return c.members(i, false, func(_ []byte, start int) (int, bool) { return c.one(start, aText) })
	case f.fields != nil:
		return c.members(i, false, func(key []byte, start int) (int, bool) {
			below, known := f.fields[string(key)]
			if !known {
				return 0, false
			}
			return c.one(start, below)
		})
	}
	if end, ok = c.skip(i); !ok {
		return 0, false
	}
	value := c.text[i:end]
	switch {
	case f.time:
		ok = isTime(string(value[1 : len(value)-1]))
	case f.number:
		ok = len(value) <= 18 && !bytes.ContainsAny(value, ".eE")
	}
	return end, ok
}
