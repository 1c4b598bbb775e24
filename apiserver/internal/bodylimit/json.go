package bodylimit

import (
	"bytes"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxParts is how many objects, or nulls in their place, a body may contain.
// Two bytes, {}, become a container of nearly a thousand, so the memory for a
// body depends on the number of its parts rather than on its length. The
// largest objects that fit into etcd have some ten thousand.
const maxParts = 100_000

// JSON refuses a body with more parts than that. Only large bodies can have
// that many, and hardly any of those has as many braces.
func JSON(body []byte) error {
	if len(body) < 3*maxParts || bytes.Count(body, []byte("{"))+bytes.Count(body, []byte("null")) <= maxParts {
		return nil
	}
	parts, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch b := body[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '{', b == 'n': // only null begins with an n
			parts++
		}
	}
	if parts <= maxParts {
		return nil
	}
	return tooManyPartsError(parts)
}

func tooManyPartsError(parts int) error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the object has %d objects in it, at most %d are taken", parts, maxParts))
}
