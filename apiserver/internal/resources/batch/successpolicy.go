package batch

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

// validateSuccessPolicy validates the policy by which a job may succeed early.
func validateSuccessPolicy(s *batchv1.JobSpec, indexed bool, at *field.Path) field.ErrorList {
	policy := s.SuccessPolicy
	if policy == nil {
		return nil
	}
	if !indexed {
		return field.ErrorList{field.Invalid(at.Child("successPolicy"), check.GoFieldNames{Value: policy}, "requires indexed completion mode")}
	}
	rules := at.Child("successPolicy", "rules")
	if len(policy.Rules) == 0 {
		return field.ErrorList{field.Required(rules, "at least one rules must be specified when the successPolicy is specified")}
	}
	var errs field.ErrorList
	if n := len(policy.Rules); n > maxRules {
		errs = append(errs, field.TooMany(rules, n, maxRules))
	}
	for i := range policy.Rules {
		errs = append(errs, validateSuccessRule(&policy.Rules[i], ptr.Deref(s.Completions, 0), rules.Index(i))...)
	}
	return errs
}

func validateSuccessRule(rule *batchv1.SuccessPolicyRule, completions int32, at *field.Path) field.ErrorList {
	if rule.SucceededIndexes == nil && rule.SucceededCount == nil {
		return field.ErrorList{field.Required(at, "at least one of succeededCount or succeededIndexes must be specified")}
	}
	var errs field.ErrorList
	named := int32(0)
	if rule.SucceededIndexes != nil {
		indexes, err := parseIndexes(*rule.SucceededIndexes, completions)
		if err != nil {
			errs = append(errs, field.Invalid(at.Child("succeededIndexes"), *rule.SucceededIndexes, "error parsing succeededIndexes: "+err.Error()))
		}
		for _, i := range indexes {
			named += i.last - i.first + 1
		}
	}
	if rule.SucceededCount == nil {
		return errs
	}
	count, path := *rule.SucceededCount, at.Child("succeededCount")
	errs = append(errs, check.Nonnegative(int64(count), path)...)
	if count > completions {
		errs = append(errs, field.Invalid(path, count,
			check.LessThanOrEqual(int(completions))+" (the number of specified completions)"))
	}
	if rule.SucceededIndexes != nil && count > named {
		errs = append(errs, field.Invalid(path, count,
			check.LessThanOrEqual(int(named))+" (the number of indexes in the specified succeededIndexes field)"))
	}
	return errs
}

// validatePodNames checks that the names of an indexed job's pods, made from
// its name and their index, are valid hostnames.
func validatePodNames(j *batchv1.Job) field.ErrorList {
	if ptr.Deref(j.Spec.CompletionMode, "") != batchv1.IndexedCompletion || ptr.Deref(j.Spec.Completions, 0) <= 0 {
		return nil
	}
	host := fmt.Sprintf("%s-%d", j.Name, *j.Spec.Completions-1)
	if len(validation.IsDNS1123Label(host)) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), j.Name,
		"will not able to create pod with invalid DNS label: "+host)}
}
