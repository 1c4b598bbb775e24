package celexpression

import (
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// maxText is the longest text that a call may make. A text of that length costs more than
// celconfig.PerCallLimit where upstream counts its length.
const maxText = 20_000_000

// tooDear reports, by the ID of an overload, whether a call with these arguments must not
// begin. The cost of a call is known when it has returned, and nothing interrupts it: with
// values of a few megabytes, some take hours or more memory than there is.
var tooDear = map[string]func(args []ref.Val) bool{
	"string_format":                    func(args []ref.Val) bool { return textLeft(args[1], maxText-sizeOf(args[0])) < 0 },
	"string_replace_string_string":     replacesToMuch,
	"string_replace_string_string_int": replacesToMuch,
	"list_join":                        func(args []ref.Val) bool { return textLeft(args[0], maxText) < 0 },
	"list_join_string": func(args []ref.Val) bool {
		return textLeft(args[0], maxText) < 0 || sizeOf(args[0])*lengthOf(args[1]) > maxText
	},
	"lists_range":               func(args []ref.Val) bool { n, ok := args[0].(types.Int); return ok && n > celconfig.PerCallLimit },
	"list_flatten":              func(args []ref.Val) bool { return elementsLeft(args[0], 1, celconfig.PerCallLimit) < 0 },
	"list_flatten_int":          flattensToMuch,
	"list_distinct":             func(args []ref.Val) bool { return sizeOf(args[0])*sizeOf(args[0]) > celconfig.PerCallLimit },
	"list_sets_contains_list":   comparesTooMany,
	"list_sets_intersects_list": comparesTooMany,
	"list_sets_equivalent_list": comparesTooMany,
}

// boundCalls makes a decorator of programs: a call that would be too dear ends the
// expression as one that has exceeded its limit does.
func boundCalls(env *cel.Env) func(interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	return func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		call, ok := i.(interpreter.InterpretableCall)
		if !ok || tooDear[call.OverloadID()] == nil {
			return i, nil
		}
		dear := tooDear[call.OverloadID()]
		run, err := implementation(env, call)
		if run == nil || err != nil {
			return i, err
		}
		return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
			if dear(args) {
				panic(interpreter.EvalCancelledError{Message: ErrCallLimit.Error(), Cause: interpreter.CostLimitExceeded})
			}
			return run(args...)
		}), nil
	}
}

// implementation is what a call runs; nil if it is not known.
func implementation(env *cel.Env, call interpreter.InterpretableCall) (functions.FunctionOp, error) {
	overloads, err := env.Functions()[call.Function()].Bindings()
	if err != nil {
		return nil, err
	}
	for _, o := range overloads {
		if o.Operator != call.OverloadID() {
			continue
		}
		switch {
		case o.Unary != nil:
			return func(args ...ref.Val) ref.Val { return o.Unary(args[0]) }, nil
		case o.Binary != nil:
			return func(args ...ref.Val) ref.Val { return o.Binary(args[0], args[1]) }, nil
		}
		return o.Function, nil
	}
	return nil, nil
}

// costTrackers make what is long cost something where upstream's cost does not depend on
// the result.
func costTrackers() cel.ProgramOption {
	return cel.CostTrackerOptions(
		interpreter.OverloadCostTracker("string_format", costOfGrowth),
		interpreter.OverloadCostTracker("string_replace_string_string", costOfGrowth),
		interpreter.OverloadCostTracker("string_replace_string_string_int", costOfGrowth),
	)
}

// shortText is up to which length a result costs nothing beyond upstream's cost.
const shortText = 1024

// costOfGrowth is the cost of a text that is much longer than what it was made from, a
// tenth for each byte as elsewhere; nil is upstream's cost.
func costOfGrowth(args []ref.Val, result ref.Val) *uint64 {
	from, made := lengthOf(args[0]), lengthOf(result)
	if made <= shortText+2*from {
		return nil
	}
	cost := uint64(made+2*from) / 10
	return &cost
}

// lengthOf is the length of a text in bytes; 0 for anything else.
func lengthOf(value ref.Val) int {
	text, _ := value.(types.String)
	return len(text)
}

// sizeOf is the number of elements of a list, or of characters of a text.
func sizeOf(value ref.Val) int {
	if sized, ok := value.(traits.Sizer); ok {
		if size, ok := sized.Size().(types.Int); ok {
			return int(size)
		}
	}
	return 0
}

// textLeft takes the length of all texts in a value, and one for everything else, from
// left, until it is below 0.
func textLeft(value ref.Val, left int) int {
	switch v := value.(type) {
	case types.String:
		return left - len(v)
	case types.Bytes:
		return left - len(v)
	case traits.Mapper:
		for keys := v.Iterator(); left >= 0 && keys.HasNext() == types.True; {
			key := keys.Next()
			left = textLeft(v.Get(key), textLeft(key, left))
		}
	case traits.Lister:
		for items := v.Iterator(); left >= 0 && items.HasNext() == types.True; {
			left = textLeft(items.Next(), left)
		}
	}
	return left - 1
}

// elementsLeft takes one for every element of a list that is flattened to the depth, from
// left, until it is below 0.
func elementsLeft(value ref.Val, depth, left int) int {
	list, ok := value.(traits.Lister)
	if !ok {
		return left
	}
	if left -= sizeOf(list); depth <= 0 {
		return left
	}
	for items := list.Iterator(); left >= 0 && items.HasNext() == types.True; {
		left = elementsLeft(items.Next(), depth-1, left)
	}
	return left
}

func flattensToMuch(args []ref.Val) bool {
	depth, ok := args[1].(types.Int)
	return ok && elementsLeft(args[0], int(depth), celconfig.PerCallLimit) < 0
}

func replacesToMuch(args []ref.Val) bool {
	text, isText := args[0].(types.String)
	old, isOld := args[1].(types.String)
	if !isText || !isOld || len(text)+(len(text)+1)*lengthOf(args[2]) <= maxText {
		return false
	}
	count := strings.Count(string(text), string(old))
	if len(args) > 3 {
		if most, ok := args[3].(types.Int); ok && most >= 0 {
			count = min(count, int(most))
		}
	}
	return len(text)+count*(lengthOf(args[2])-len(old)) > maxText
}

func comparesTooMany(args []ref.Val) bool {
	return sizeOf(args[0])*sizeOf(args[1]) > celconfig.PerCallLimit
}
