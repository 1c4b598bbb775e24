package cache

import "encoding/binary"

// pairs holds names and values that selectors look at, one after the other,
// each preceded by its length. An object has a few, and thousands of objects
// are kept: one string takes a fifth of a map's memory, is searched as fast,
// and costs the garbage collector nothing.
type pairs string

func pairsOf(m map[string]string) pairs {
	size := 0
	for name, value := range m {
		size += 2*binary.MaxVarintLen16 + len(name) + len(value)
	}
	packed := make([]byte, 0, size)
	for name, value := range m {
		packed = appendText(appendText(packed, name), value)
	}
	return pairs(packed)
}

func appendText(to []byte, text string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

// cut returns the first text of p, and the rest.
func (p pairs) cut() (text string, rest pairs) {
	length, at := 0, 0
	for shift := 0; ; shift += 7 {
		b := p[at]
		length |= int(b&0x7f) << shift
		at++
		if b < 0x80 {
			return string(p[at : at+length]), p[at+length:]
		}
	}
}

// Lookup implements labels.Labels.
func (p pairs) Lookup(name string) (value string, exists bool) {
	for len(p) > 0 {
		var have string
		have, p = p.cut()
		value, p = p.cut()
		if have == name {
			return value, true
		}
	}
	return "", false
}

// Has implements labels.Labels and fields.Fields.
func (p pairs) Has(name string) bool {
	_, exists := p.Lookup(name)
	return exists
}

// Get implements labels.Labels and fields.Fields.
func (p pairs) Get(name string) string {
	value, _ := p.Lookup(name)
	return value
}
