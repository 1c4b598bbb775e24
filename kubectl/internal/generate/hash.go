package generate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"kctl/proto/core"
)

// hashLength is how many digits of a hash go into a name.
const hashLength = 10

// unmistakable replaces the digits of a hash that could make words or look alike.
var unmistakable = strings.NewReplacer("0", "g", "1", "h", "3", "k", "a", "m", "e", "t")

// Hash is the suffix that makes the name of a config map or secret change with
// its content: the one that `kubectl create --append-hash` appends, over the
// name, the data and a secret's type.
func Hash(object core.Object) (string, error) {
	content := map[string]any{"name": object.GetName()}
	switch o := object.(type) {
	case *core.ConfigMap:
		content["kind"], content["data"] = "ConfigMap", notNull(o.Data)
		if len(o.BinaryData) > 0 {
			content["binaryData"] = o.BinaryData
		}
	case *core.Secret:
		content["kind"], content["data"], content["type"] = "Secret", notNull(o.Data), o.Type
	default:
		return "", fmt.Errorf("there is no hash of a %T", object)
	}
	text, err := json.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("encoding the object: %w", err)
	}
	sum := sha256.Sum256(text)
	return unmistakable.Replace(hex.EncodeToString(sum[:])[:hashLength]), nil
}

func notNull[V any](data map[string]V) map[string]V {
	if data == nil {
		return map[string]V{}
	}
	return data
}
