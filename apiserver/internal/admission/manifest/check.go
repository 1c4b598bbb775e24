package manifest

import (
	"errors"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"kctl/apiserver/internal/resources/admissionregistration"
	"kctl/proto/core"
)

// check refuses what only objects of the API may have: what is in a manifest may not depend on
// anything that is stored, which may be absent or changed by anybody.
func check(obj core.Object) error {
	if !strings.HasSuffix(obj.GetName(), admissionregistration.StaticSuffix) {
		return fmt.Errorf("must have a name ending with %q", admissionregistration.StaticSuffix)
	}
	switch o := obj.(type) {
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for _, w := range o.Webhooks {
			if err := checkClient(w.Name, &w.ClientConfig); err != nil {
				return err
			}
		}
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for _, w := range o.Webhooks {
			if err := checkClient(w.Name, &w.ClientConfig); err != nil {
				return err
			}
		}
	case *admissionregistrationv1.ValidatingAdmissionPolicy:
		return checkPolicy(o.Spec.ParamKind)
	case *admissionregistrationv1.MutatingAdmissionPolicy:
		return checkPolicy(o.Spec.ParamKind)
	case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
		return checkBinding(o.Spec.PolicyName, o.Spec.ParamRef)
	case *admissionregistrationv1.MutatingAdmissionPolicyBinding:
		return checkBinding(o.Spec.PolicyName, o.Spec.ParamRef)
	}
	return nil
}

func checkClient(name string, c *admissionregistrationv1.WebhookClientConfig) error {
	if c.URL == nil || *c.URL == "" {
		return fmt.Errorf("webhook %q: clientConfig.service is not supported for static manifests; use clientConfig.url instead", name)
	}
	return nil
}

func checkPolicy(kind *admissionregistrationv1.ParamKind) error {
	if kind != nil {
		return errors.New("spec.paramKind is not supported for static manifests")
	}
	return nil
}

func checkBinding(policy string, ref *admissionregistrationv1.ParamRef) error {
	switch {
	case !strings.HasSuffix(policy, admissionregistration.StaticSuffix):
		return fmt.Errorf("spec.policyName %q must end with %q", policy, admissionregistration.StaticSuffix)
	case ref != nil:
		return errors.New("spec.paramRef is not supported for static manifests")
	}
	return nil
}

// checkTogether requires that each name is there once, and that each binding's policy is there.
func checkTogether(objects []core.Object) error {
	named := map[string]map[string]bool{policies: {}, bindings: {}, configurations: {}}
	for _, obj := range objects {
		of := named[roleOf(obj)]
		if of[obj.GetName()] {
			return fmt.Errorf("duplicate name %q", obj.GetName())
		}
		of[obj.GetName()] = true
	}
	for _, obj := range objects {
		policy := ""
		switch o := obj.(type) {
		case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
			policy = o.Spec.PolicyName
		case *admissionregistrationv1.MutatingAdmissionPolicyBinding:
			policy = o.Spec.PolicyName
		default:
			continue
		}
		if !named[policies][policy] {
			return fmt.Errorf("binding %q references policy %q which does not exist in the manifest directory", obj.GetName(), policy)
		}
	}
	return nil
}

// What an object is, of those that a directory may hold together.
const policies, bindings, configurations = "policies", "bindings", "configurations"

func roleOf(obj core.Object) string {
	switch obj.(type) {
	case *admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.MutatingAdmissionPolicy:
		return policies
	case *admissionregistrationv1.ValidatingAdmissionPolicyBinding, *admissionregistrationv1.MutatingAdmissionPolicyBinding:
		return bindings
	}
	return configurations
}
