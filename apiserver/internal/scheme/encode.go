package scheme

import (
	"io"

	fast "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/v1"
)

// asStandard has the quicker encoder write what encoding/json writes, to the
// byte: clients and etcd see no other form of an object than upstream's.
var asStandard = json.DefaultOptionsV1()

// Encode returns obj in JSON, as encoding/json does in nearly twice the time.
func Encode(obj any) ([]byte, error) { return fast.Marshal(obj, asStandard) }

// Write is Encode into a buffer.
func Write(to io.Writer, obj any) error { return fast.MarshalWrite(to, obj, asStandard) }
