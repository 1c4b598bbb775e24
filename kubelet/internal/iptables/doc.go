// Package iptables sets rules of the kernel's packet filter by the machine's own
// programs, iptables and ip6tables: whether they speak to nft or to the older tables is
// theirs to know.
//
// The rooms that need rules call it, for chains of their own and for jumps to them. It
// never removes anything.
package iptables
