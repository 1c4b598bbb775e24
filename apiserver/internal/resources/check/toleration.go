package check

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/field"
)

// TaintEffects are what a taint can do to a pod.
var TaintEffects = sets.New(corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)

// effectsInOrder are the effects in the order of messages.
var effectsInOrder = []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}

// Tolerations checks tolerations of a pod, or those added to it.
func Tolerations(tolerations []corev1.Toleration, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, t := range tolerations {
		path := at.Index(i)
		switch {
		case t.Key != "" && !isLabelKey(t.Key):
			errs = append(errs, metav1validation.ValidateLabelName(t.Key, path.Child("key").Upstream())...)
		case t.Key == "" && t.Operator != corev1.TolerationOpExists:
			errs = append(errs, field.Invalid(path.Child("operator"), t.Operator,
				"operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
		}
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			errs = append(errs, field.Invalid(path.Child("effect"), t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
		}
		switch t.Operator {
		case corev1.TolerationOpEqual, "": // empty means Equal
			if texts := validation.IsValidLabelValue(t.Value); len(texts) > 0 {
				errs = append(errs, field.Invalid(path.Child("operator"), t.Value, strings.Join(texts, ";")))
			}
		case corev1.TolerationOpExists:
			if t.Value != "" {
				errs = append(errs, field.Invalid(path.Child("operator"), t.Value, "value must be empty when `operator` is 'Exists'"))
			}
		case corev1.TolerationOpLt, corev1.TolerationOpGt: // of a feature that is off
			errs = append(errs, field.NotSupported(path.Child("operator"), t.Operator, []corev1.TolerationOperator{
				corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpLt, corev1.TolerationOpGt,
			}))
		default:
			errs = append(errs, field.NotSupported(path.Child("operator"), t.Operator, []corev1.TolerationOperator{
				corev1.TolerationOpEqual, corev1.TolerationOpExists,
			}))
		}
		if t.Effect != "" && !TaintEffects.Has(t.Effect) {
			errs = append(errs, field.NotSupported(path.Child("effect"), t.Effect, effectsInOrder))
		}
	}
	return errs
}
