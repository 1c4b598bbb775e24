package celexpression

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/api/resource"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"kctl/proto/quantity"
)

// boundQuantities is a decorator of programs: quantity() and isQuantity() read no
// quantity that is too dear to compute. Their cost is that of the text's length, and
// one call is not interrupted, so that neither a budget nor a request's end would
// stop it.
func boundQuantities(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	var read func(string) ref.Val
	switch call.OverloadID() {
	case "string_to_quantity":
		read = quantityOf
	case "is_quantity_string":
		read = isQuantity
	default:
		return i, nil
	}
	return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(values ...ref.Val) ref.Val {
		if text, ok := values[0].(types.String); ok {
			return read(string(text))
		}
		return types.MaybeNoSuchOverloadErr(values[0])
	}), nil
}

func quantityOf(text string) ref.Val {
	if quantity.Huge([]byte(text)) {
		return types.NewErr("%s", quantity.Refusal([]byte(text)))
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return types.WrapErr(err)
	}
	return apiservercel.Quantity{Quantity: &q}
}

func isQuantity(text string) ref.Val {
	if quantity.Huge([]byte(text)) {
		return types.False
	}
	_, err := resource.ParseQuantity(text)
	return types.Bool(err == nil)
}
