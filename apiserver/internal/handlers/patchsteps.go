package handlers

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxPatchSteps bounds the work of one JSON patch to two seconds: enough for 10,000
// operations on lists of 10,000 elements. For each element inserted into a list or
// removed from it, except at the end, the library copies the list.
const maxPatchSteps = 200_000_000

// checkOperations refuses a patch that takes too much work. Which list an operation
// concerns is unknown until the earlier ones are done, so each is assumed to concern the
// longest.
func checkOperations(operations []jsonPatchOp, body, before []byte) error {
	moving := 0
	for _, op := range operations {
		if op.mayMoveElements() {
			moving++
		}
	}
	if moving*(moving+(len(before)+len(body))/2) <= maxPatchSteps { // an element has two bytes at least
		return nil
	}
	var object any
	if err := json.Unmarshal(before, &object); err != nil {
		return fmt.Errorf("decode what is to be patched: %w", err)
	}
	longest := longestList(object)
	for _, op := range operations {
		longest = max(longest, longestList(op.Value))
	}
	if steps := moving * (moving + longest); steps > maxPatchSteps {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the lists are too long for a JSON patch with so many operations (%d steps, "+
			"at most %d are accepted); replace the whole list instead", steps, maxPatchSteps))
	}
	return nil
}

// mayMoveElements: the operation may have to move the elements of a list.
func (op jsonPatchOp) mayMoveElements() bool {
	switch op.Op {
	case "add", "copy", "remove":
		return mayPointIntoList(op.Path)
	case "move":
		return mayPointIntoList(op.From) || mayPointIntoList(op.Path)
	}
	return false
}

// mayPointIntoList: the pointer may be that of an existing element.
func mayPointIntoList(pointer string) bool {
	_, err := strconv.Atoi(pointer[strings.LastIndexByte(pointer, '/')+1:])
	return err == nil
}

// longestList is the length of the longest list in a value.
func longestList(value any) int {
	longest := 0
	switch value := value.(type) {
	case []any:
		longest = len(value)
		for _, element := range value {
			longest = max(longest, longestList(element))
		}
	case map[string]any:
		for _, field := range value {
			longest = max(longest, longestList(field))
		}
	}
	return longest
}
