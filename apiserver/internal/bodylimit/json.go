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

// JSON refuses a body with more parts than that.
func JSON(body []byte) error {
	if parts := partsBeyond(maxParts, body); parts > 0 {
		return tooManyPartsError(parts)
	}
	return nil
}

// Answer refuses an answer, in JSON, with far more parts than the question had, and
// more than a body may have. An answer about many objects has many parts.
func Answer(answer, question []byte) error {
	most := maxParts + answerFactor*braces(question)
	if parts := partsBeyond(most, answer); parts > 0 {
		return fmt.Errorf("the answer contains %d objects; at most %d are accepted", parts, most)
	}
	return nil
}

// answerFactor is how much larger an answer may be than the question.
const answerFactor = 4

// braces is the number of parts, or more. Only large bodies can have many parts, and
// hardly any of those has many braces.
func braces(body []byte) int {
	return bytes.Count(body, []byte("{")) + bytes.Count(body, []byte("null"))
}

// partsBeyond is the number of parts if they are more than most, and otherwise 0.
func partsBeyond(most int, body []byte) int {
	if len(body) < 3*most || braces(body) <= most {
		return 0
	}
	parts := 0
	for b := range Structure(body) {
		if b == '{' || b == 'n' { // only null begins with an n
			parts++
		}
	}
	if parts <= most {
		return 0
	}
	return parts
}

func tooManyPartsError(parts int) error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the object contains %d objects; at most %d are accepted", parts, maxParts))
}
