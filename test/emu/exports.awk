# Makes the library's functions of their list and of the sources that implement some of them.
#
#   awk -f exports.awk FUNCTIONS SOURCE.cc...
#
# Each name is a few instructions of its own, which a hook can move elsewhere when it puts its own in their place, and a
# jump to the implementation (emu_NAME) or to the one function that says "not supported".
FILENAME == ARGV[1] && /^cu/ { version[$1] = $2; order[++count] = $1 }
FILENAME != ARGV[1] && match($0, /^extern "C" CUresult emu_cu[A-Za-z0-9_]+\(/) {
  name = substr($0, RSTART + 24, RLENGTH - 25)
  implemented[name] = 1
  if (!(name in version)) { print FILENAME ": " name " is no function of the driver" > "/dev/stderr"; failed = 1 }
}
END {
  if (failed) exit 1
  print "// Made by exports.awk."
  print "#include \"emu/exports.h\"\n"
  print "#ifdef __x86_64__"
  print "#define BEGIN(number) \"mov $\" #number \", %eax; mov $\" #number \", %eax; mov $\" #number \", %eax; jmp \""
  print "#else"
  print "#define BEGIN(number) \"mov w9, #\" #number \"; mov w9, #\" #number \"; b \""
  print "#endif"
  print "#define EXPORT(name, number, function)                                                              \\"
  print "  asm(\".text\\n.p2align 4\\n.globl \" #name \"\\n.type \" #name \", %function\\n\" #name \":\\n\" BEGIN(number) \\"
  print "      #function \"\\n.size \" #name \", . - \" #name \"\\n\");\n"
  for (i = 1; i <= count; ++i) {
    name = order[i]
    print "EXPORT(" name ", " i ", " (name in implemented ? "emu_" name : "emu_not_supported") ")"
  }
  print "\nextern \"C\" {"
  for (i = 1; i <= count; ++i) print "void " order[i] "();"
  print "}\n"
  print "namespace emu {\n"
  print "const Export kExports[] = {"
  for (i = 1; i <= count; ++i) print "    {\"" order[i] "\", " version[order[i]] ", " order[i] "},"
  print "};"
  print "const size_t kExportCount = " count ";\n"
  print "}  // namespace emu"
}
