package customresources

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// scalePaths are where an object has what Scale is about.
type scalePaths struct {
	spec, status, selector []string
	specPath               string
}

func newScalePaths(s *apiextensionsv1.CustomResourceSubresourceScale) *scalePaths {
	p := &scalePaths{specPath: s.SpecReplicasPath, spec: stepsOf(s.SpecReplicasPath), status: stepsOf(s.StatusReplicasPath)}
	if s.LabelSelectorPath != nil && *s.LabelSelectorPath != "" {
		p.selector = stepsOf(*s.LabelSelectorPath)
	}
	return p
}

func stepsOf(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

// maxReplicas is the largest number that Scale has room for.
const maxReplicas = 1<<31 - 1

// validate makes sure that Scale can show the object.
func (p *scalePaths) validate(o *object) (errs field.ErrorList) {
	value, ok := lookUp(o.Object, p.spec)
	if !ok {
		return nil
	}
	path := field.NewPath(p.specPath)
	replicas, ok := value.(int64)
	switch {
	case !ok:
		errs = append(errs, field.Invalid(path, 0, fmt.Sprintf("%s accessor error: %v is of the type %T, expected int64", p.specPath, value, value)))
	case replicas < 0:
		errs = append(errs, field.Invalid(path, replicas, "should be a non-negative integer"))
	case replicas > maxReplicas:
		errs = append(errs, field.Invalid(path, replicas, fmt.Sprintf("should be less than or equal to %v", maxReplicas)))
	}
	return errs
}
