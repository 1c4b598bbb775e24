package check

import (
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation"

	"kctl/apiserver/internal/field"
)

// NonSpecialIP refuses invalid addresses, and those that mean something else on
// each machine.
func NonSpecialIP(ip string, at *field.Path) field.ErrorList {
	if errs := validation.IsValidIPForLegacyField(at.Upstream(), ip, true, nil); len(errs) > 0 {
		return errs
	}
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return field.ErrorList{field.Invalid(at, ip, err.Error())}
	}
	says := ""
	switch {
	case addr.IsUnspecified():
		says = "may not be unspecified (" + ip + ")"
	case addr.IsLoopback():
		says = "may not be in the loopback range (127.0.0.0/8, ::1/128)"
	case addr.IsLinkLocalUnicast():
		says = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
	case addr.IsLinkLocalMulticast():
		says = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
	default:
		return nil
	}
	return field.ErrorList{field.Invalid(at, ip, says)}
}
