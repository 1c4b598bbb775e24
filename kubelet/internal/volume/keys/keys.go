// Package keys turns the keys of a config map or a secret into the files of a
// volume, with the items, modes and owners that the volume asks for.
//
// The kinds of volume with such content call it. It is pure.
package keys

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kctl/kubelet/internal/volume/atomic"
)

// Defaults are for files whose item does not say otherwise.
type Defaults struct {
	Mode int32
	User *int64
}

// defaultMode is that of volumes that name none.
const defaultMode int32 = 0o644

// NewDefaults are the defaults that a volume source gives.
func NewDefaults(mode *int32, user *int64) Defaults {
	return Defaults{Mode: ptr.Deref(mode, defaultMode), User: user}
}

// File is data with an item's mode and owner, or the defaults.
func (d Defaults) File(data []byte, mode *int32, user *int64) atomic.File {
	return atomic.File{Data: data, Mode: ptr.Deref(mode, d.Mode), User: cmp.Or(user, d.User)}
}

// Source is an object with keys, and the wanted part of it.
type Source struct {
	What     string // "config", "secret": for errors
	Values   map[string][]byte
	Items    []corev1.KeyToPath // all keys if there are none
	Optional bool               // whether keys may be missing
}

// Payload is the volume's content.
func Payload(s Source, d Defaults) (atomic.Payload, error) {
	payload := make(atomic.Payload, len(s.Values))
	if len(s.Items) == 0 {
		for key, value := range s.Values {
			payload[key] = d.File(value, nil, nil)
		}
		return payload, nil
	}
	for _, item := range s.Items {
		value, ok := s.Values[item.Key]
		if !ok {
			if s.Optional {
				continue
			}
			return nil, fmt.Errorf("references non-existent %s key: %s", s.What, item.Key)
		}
		payload[item.Path] = d.File(value, item.Mode, item.User)
	}
	return payload, nil
}
