package service

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	utilnet "k8s.io/utils/net"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/resources/check"
)

// familyOf is the family of an address; "" for None.
func familyOf(ip string) (corev1.IPFamily, bool) {
	addr, err := netip.ParseAddr(ip)
	if err != nil || addr.Is4In6() {
		return "", false
	}
	return FamilyOf(addr), true
}

// FamilyOf is the family of an address.
func FamilyOf(addr netip.Addr) corev1.IPFamily {
	if addr.Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

func otherFamily(f corev1.IPFamily) corev1.IPFamily {
	if f == corev1.IPv4Protocol {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

// addressesOf are the addresses of a service; None is none.
func addressesOf(s *corev1.Service) []string {
	switch {
	case !needsClusterIP(s) || s.Spec.ClusterIP == "":
		return nil
	case len(s.Spec.ClusterIPs) == 0: // stored by a client that knew one address only
		return []string{s.Spec.ClusterIP}
	}
	return s.Spec.ClusterIPs
}

// ClusterIPs are the addresses of a service, in canonical form.
func ClusterIPs(s *corev1.Service) []netip.Addr {
	var out []netip.Addr
	for _, ip := range addressesOf(s) {
		if addr, err := netip.ParseAddr(ip); err == nil {
			out = append(out, addr)
		}
	}
	return out
}

// anyFamily reports whether a service may be of any family: the endpoints of a
// headless service without a selector are set by its owner, also in a family for
// which the cluster has no range.
func anyFamily(spec *corev1.ServiceSpec) bool {
	return spec.ClusterIP == corev1.ClusterIPNone && len(spec.Selector) == 0
}

// setFamilies sets a service's families if it does not specify them (KEP-563).
// have are those of the cluster's ranges, the default one first.
func setFamilies(spec *corev1.ServiceSpec, have []corev1.IPFamily) field.ErrorList {
	if spec.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	if spec.IPFamilyPolicy == nil {
		spec.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack)
		if anyFamily(spec) {
			spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack)
		}
	}
	if errs := checkFamilies(spec, have); len(errs) > 0 {
		return errs
	}
	families := slices.Clone(spec.IPFamilies)
	for i, ip := range spec.ClusterIPs {
		if f, ok := familyOf(ip); ok && i >= len(families) {
			families = append(families, f)
		}
	}
	if len(families) == 0 {
		families = have[:1:1]
	}
	if second := otherFamily(families[0]); len(families) == 1 && *spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack &&
		(anyFamily(spec) || slices.Contains(have, second)) {
		families = append(families, second)
	}
	spec.IPFamilies = families
	return nil
}

// checkFamilies refuses families without a range, and two families for a
// single-stack service.
func checkFamilies(spec *corev1.ServiceSpec, have []corev1.IPFamily) field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("spec")
	policy, policyPath := *spec.IPFamilyPolicy, at.Child("ipFamilyPolicy")
	single := policy == corev1.IPFamilyPolicySingleStack
	var ips field.ErrorList
	for i, ip := range spec.ClusterIPs {
		if f, ok := familyOf(ip); ok && i >= len(spec.IPFamilies) && !slices.Contains(have, f) {
			ips = append(ips, field.Invalid(at.Child("clusterIPs").Index(i), spec.ClusterIPs,
				fmt.Sprintf("%s is not configured on this cluster", f)))
		}
	}
	if policy == corev1.IPFamilyPolicyRequireDualStack && len(have) < 2 && len(ips) == 0 && !anyFamily(spec) {
		errs = append(errs, field.Invalid(policyPath, policy, "this cluster is not configured for dual-stack services"))
	}
	if single && len(spec.ClusterIPs) > 1 {
		errs = append(errs, field.Invalid(policyPath, policy,
			"must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified"))
	}
	errs = append(errs, ips...)
	if single && len(spec.IPFamilies) > 1 {
		return append(errs, field.Invalid(policyPath, policy,
			"must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"))
	}
	for i, f := range spec.IPFamilies {
		if !slices.Contains(have, f) && !anyFamily(spec) {
			errs = append(errs, field.Invalid(at.Child("ipFamilies").Index(i), f, "not configured on this cluster"))
		}
	}
	return errs
}

// keepFamilies restores addresses and families that an update omits, and
// removes the second of each from a service that becomes single-stack.
func keepFamilies(s, old *corev1.ServiceSpec) {
	same := slices.Equal(s.ClusterIPs, old.ClusterIPs)
	switch {
	case s.ClusterIP == "" && (len(s.ClusterIPs) == 0 || same):
		s.ClusterIP, s.ClusterIPs = old.ClusterIP, old.ClusterIPs
	case s.ClusterIP == old.ClusterIP && len(s.ClusterIPs) == 0:
		s.ClusterIPs = old.ClusterIPs
	case s.ClusterIP != "" && s.ClusterIP != old.ClusterIP && same: // by a client that knows one address only
		s.ClusterIPs = nil
	}
	syncClusterIPs(s)
	if s.IPFamilies == nil {
		s.IPFamilies = old.IPFamilies
	}
	if s.IPFamilyPolicy == nil {
		s.IPFamilyPolicy = old.IPFamilyPolicy
	}
	if ptr.Deref(s.IPFamilyPolicy, "") != corev1.IPFamilyPolicySingleStack || len(old.IPFamilies) < 2 {
		return
	}
	if slices.Equal(s.IPFamilies, old.IPFamilies) {
		s.IPFamilies = s.IPFamilies[:1:1]
	}
	if len(s.ClusterIPs) > 1 && slices.Equal(s.ClusterIPs, old.ClusterIPs) {
		s.ClusterIPs = s.ClusterIPs[:1:1]
	}
}

// dropFamilies is for a service that becomes an ExternalName.
func dropFamilies(s, old *corev1.ServiceSpec) {
	if s.ClusterIP == old.ClusterIP {
		s.ClusterIP, s.ClusterIPs = "", nil
	}
	if slices.Equal(s.IPFamilies, old.IPFamilies) {
		s.IPFamilies = nil
	}
	if ptr.Equal(s.IPFamilyPolicy, old.IPFamilyPolicy) {
		s.IPFamilyPolicy = nil
	}
}

// changedFamilies checks that a service's first family and address stay; the
// policy adds and removes the second.
func changedFamilies(s, old *corev1.ServiceSpec, at *field.Path) field.ErrorList {
	if s.Type == corev1.ServiceTypeExternalName || old.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	if policy := ptr.Deref(s.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack); policy != corev1.IPFamilyPolicySingleStack {
		var errs field.ErrorList
		if len(old.ClusterIPs) > 1 && len(s.ClusterIPs) == 1 {
			errs = append(errs, field.Invalid(at.Child("ipFamilyPolicy"), policy, "must be 'SingleStack' to release the secondary cluster IP"))
		}
		if len(old.IPFamilies) > 1 && len(s.IPFamilies) == 1 {
			errs = append(errs, field.Invalid(at.Child("ipFamilyPolicy"), policy, "must be 'SingleStack' to release the secondary IP family"))
		}
		if len(errs) > 0 {
			return errs
		}
	}
	var errs field.ErrorList
	for i := range min(len(s.ClusterIPs), len(old.ClusterIPs)) {
		if s.ClusterIPs[i] != old.ClusterIPs[i] {
			errs = append(errs, field.Invalid(at.Child("clusterIPs").Index(i), s.ClusterIPs, "may not change once set"))
		}
	}
	return errs
}

// validateFamilies validates families, policy and addresses independently of
// the cluster. ExternalName services have none.
func validateFamilies(spec *corev1.ServiceSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	ips := at.Child("clusterIPs")
	if len(spec.ClusterIPs) > 0 && spec.ClusterIP == "" {
		errs = append(errs, field.Invalid(ips, spec.ClusterIPs, "must be empty when `clusterIP` is not specified"))
	} else if len(spec.ClusterIPs) > 0 && spec.ClusterIPs[0] != spec.ClusterIP {
		errs = append(errs, field.Invalid(ips, spec.ClusterIPs, "first value must match `clusterIP`"))
	}
	seen := sets.New[corev1.IPFamily]()
	for i, f := range spec.IPFamilies {
		path := at.Child("ipFamilies").Index(i)
		errs = append(errs, check.Supported(f, path, corev1.IPv4Protocol, corev1.IPv6Protocol)...)
		if seen.Has(f) {
			errs = append(errs, field.Duplicate(path, f))
		}
		seen.Insert(f)
	}
	errs = append(errs, check.Supported(ptr.Deref(spec.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack), at.Child("ipFamilyPolicy"),
		corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack)...)
	return append(errs, validateClusterIPs(spec, ips)...)
}

// validateClusterIPs checks that a service's addresses are valid, one per
// family, in the families' order.
func validateClusterIPs(spec *corev1.ServiceSpec, at *field.Path) field.ErrorList {
	errs := validateEachIP(spec, at)
	readable := len(errs) == 0
	if len(spec.ClusterIPs) > 2 {
		errs = append(errs, field.Invalid(at, spec.ClusterIPs, "may only hold up to 2 values"))
	}
	if !readable || len(spec.ClusterIPs) == 1 && spec.ClusterIPs[0] == corev1.ClusterIPNone {
		return errs
	}
	have := map[corev1.IPFamily]bool{}
	var order field.ErrorList
	for i, ip := range spec.ClusterIPs {
		f, _ := familyOf(ip)
		have[f] = true
		if i < len(spec.IPFamilies) && familyKnown(spec.IPFamilies[i]) && spec.IPFamilies[i] != f {
			order = append(order, field.Invalid(at.Index(i), ip,
				fmt.Sprintf("expected an %s value as indicated by `ipFamilies[%d]`", spec.IPFamilies[i], i)))
		}
	}
	if len(spec.ClusterIPs) > 1 && len(have) < 2 {
		errs = append(errs, field.Invalid(at, spec.ClusterIPs, "may specify no more than one IP for each IP family"))
	}
	return append(errs, order...)
}

// validateEachIP checks how each address is written.
func validateEachIP(spec *corev1.ServiceSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, ip := range spec.ClusterIPs {
		if i == 0 && ip == corev1.ClusterIPNone {
			if len(spec.ClusterIPs) > 1 {
				errs = append(errs, field.Invalid(at, spec.ClusterIPs, "'None' must be the first and only value"))
			}
			continue
		}
		if _, ok := familyOf(ip); ok {
			continue
		}
		text := "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
		if addr, err := netip.ParseAddr(ip); err == nil && addr.Is4In6() {
			text = "must not be an IPv4-mapped IPv6 address"
		} else if utilnet.ParseIPSloppy(ip) != nil {
			text = "must not have leading 0s"
		}
		errs = append(errs, field.Invalid(at.Index(i), ip, text))
	}
	return errs
}

func familyKnown(f corev1.IPFamily) bool { return f == corev1.IPv4Protocol || f == corev1.IPv6Protocol }
