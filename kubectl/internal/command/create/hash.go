package create

import (
	"github.com/spf13/pflag"

	"kctl/kubectl/internal/generate"
	"kctl/proto/core"
)

// appendHash is --append-hash: the name depends on the content, so a change
// rolls out the workloads that use the object by name.
type appendHash bool

func (h *appendHash) add(fs *pflag.FlagSet, kind string) {
	fs.BoolVar((*bool)(h), "append-hash", false, "Append a hash of the "+kind+" to its name.")
}

// apply appends the hash to the name of a generated object.
func (h appendHash) apply(object core.Object) (core.Object, error) {
	if !h {
		return object, nil
	}
	hash, err := generate.Hash(object)
	if err != nil {
		return nil, err
	}
	object.SetName(object.GetName() + "-" + hash)
	return object, nil
}
