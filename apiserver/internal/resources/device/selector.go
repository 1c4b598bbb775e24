package device

import (
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/ext"
	resourcev1 "k8s.io/api/resource/v1"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"kctl/apiserver/internal/celexpression"
	"kctl/apiserver/internal/field"
)

// selectorEnvironment is what selectors of devices see: `device`, with the
// fields that the docs of CELDeviceSelector name.
var selectorEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	byName := func(value *apiservercel.DeclType) *apiservercel.DeclType {
		domain := apiservercel.NewMapType(apiservercel.StringType, value, resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice)
		return apiservercel.NewMapType(apiservercel.StringType, domain, resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice)
	}
	fields := map[string]*apiservercel.DeclField{}
	for name, kind := range map[string]*apiservercel.DeclType{
		"driver": apiservercel.StringType, "allowMultipleAllocations": apiservercel.BoolType,
		"attributes": byName(apiservercel.AnyType), "capacity": byName(apiservercel.QuantityDeclType),
	} {
		fields[name] = apiservercel.NewDeclField(name, kind, true, nil, nil)
	}
	device := apiservercel.NewObjectType("kubernetes.DRADevice", fields)
	set, err := celexpression.Environment([]*apiservercel.DeclType{device}, cel.Variable("device", device.CelType()),
		ext.Bindings(ext.BindingsVersion(0)))
	if err != nil {
		return nil, err
	}
	return set.Env(celexpression.New)
})

// validateSelector compiles a selector, as upstream does, so that its author
// and not the scheduler finds its errors.
func validateSelector(text string, at *field.Path) *field.Error {
	env, err := selectorEnvironment()
	if err != nil {
		return field.InternalError(at, err)
	}
	checked, problem := celexpression.Check(env, text)
	if problem != nil {
		if problem.Type == apiservercel.ErrorTypeInternal {
			return field.InternalError(at, problem)
		}
		return field.Invalid(at, text, problem.Detail)
	}
	if got := checked.Returns; !got.IsExactType(cel.BoolType) && !got.IsExactType(cel.AnyType) {
		return field.Invalid(at, text, fmt.Sprintf("must evaluate to bool or the unknown type, not %s", got))
	}
	cost, err := checked.Cost(deviceSizes{})
	if err != nil {
		return field.InternalError(at, err)
	}
	if cost > resourcev1.CELSelectorExpressionMaxCost {
		return field.Forbidden(at, "too complex, exceeds cost limit")
	}
	return nil
}

// deviceSizes knows the maximum sizes of a device's parts.
type deviceSizes struct{}

// EstimateSize implements checker.CostEstimator.
func (deviceSizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	path := element.Path()
	if len(path) < 2 || path[0] != "device" {
		return nil
	}
	most := uint64(0)
	switch depth, last := len(path), path[len(path)-1]; {
	case path[1] == "driver":
		most = resourcev1.DriverNameMaxLength
	case depth == 2 || depth == 3 && last == "@values":
		most = resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice
	case depth == 3 && last == "@keys":
		most = resourcev1.DeviceMaxDomainLength
	case depth == 4 && last == "@keys":
		most = resourcev1.DeviceMaxIDLength
	default:
		most = resourcev1.DeviceAttributeMaxValueLength
	}
	return &checker.SizeEstimate{Min: 0, Max: most}
}

// EstimateCallCost implements checker.CostEstimator: the libraries know it.
func (deviceSizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}
