// Package mempipe has connections in memory that end as those of TCP do. They work in virtual time, within
// testing/synctest.
package mempipe
