
DEVICE int random_bits(i64 x, i64 y, i64 z)
{
    const i64 v10 = shift_right(x, 32ll);
    const i64 v11 = shift_right(y, 32ll);
    const i64 v12 = shift_right(z, 32ll);
    const i64 v13 = y & 4294967295ll;
    const i64 v14 = z & 4294967295ll;
    const i64 v15 = mul(v13, 3528531795ll);
    const i64 v16 = mul(v14, 3449720151ll);
    const i64 v17 = shift_right(v15, 32ll);
    const i64 v18 = shift_right(v16, 32ll);
    const i64 v19 = v18 ^ v11;
    const i64 v20 = v19 ^ x;
    const i64 v21 = v17 ^ v12;
    const i64 v22 = v21 ^ v10;
    const i64 v23 = add(x, 2654435769ll);
    const i64 v24 = add(v10, 3144134277ll);
    const i64 v25 = v20 & 4294967295ll;
    const i64 v26 = v22 & 4294967295ll;
    const i64 v27 = mul(v25, 3528531795ll);
    const i64 v28 = mul(v26, 3449720151ll);
    const i64 v29 = shift_right(v27, 32ll);
    const i64 v30 = shift_right(v28, 32ll);
    const i64 v31 = v30 ^ v16;
    const i64 v32 = v31 ^ v23;
    const i64 v33 = v29 ^ v15;
    const i64 v34 = v33 ^ v24;
    const i64 v35 = add(v23, 2654435769ll);
    const i64 v36 = add(v24, 3144134277ll);
    const i64 v37 = v32 & 4294967295ll;
    const i64 v38 = v34 & 4294967295ll;
    const i64 v39 = mul(v37, 3528531795ll);
    const i64 v40 = mul(v38, 3449720151ll);
    const i64 v41 = shift_right(v39, 32ll);
    const i64 v42 = shift_right(v40, 32ll);
    const i64 v43 = v42 ^ v28;
    const i64 v44 = v43 ^ v35;
    const i64 v45 = v41 ^ v27;
    const i64 v46 = v45 ^ v36;
    const i64 v47 = add(v35, 2654435769ll);
    const i64 v48 = add(v36, 3144134277ll);
    const i64 v49 = v44 & 4294967295ll;
    const i64 v50 = v46 & 4294967295ll;
    const i64 v51 = mul(v49, 3528531795ll);
    const i64 v52 = mul(v50, 3449720151ll);
    const i64 v53 = shift_right(v51, 32ll);
    const i64 v54 = shift_right(v52, 32ll);
    const i64 v55 = v54 ^ v40;
    const i64 v56 = v55 ^ v47;
    const i64 v57 = v53 ^ v39;
    const i64 v58 = v57 ^ v48;
    const i64 v59 = add(v47, 2654435769ll);
    const i64 v60 = add(v48, 3144134277ll);
    const i64 v61 = v56 & 4294967295ll;
    const i64 v62 = v58 & 4294967295ll;
    const i64 v63 = mul(v61, 3528531795ll);
    const i64 v64 = mul(v62, 3449720151ll);
    const i64 v65 = shift_right(v63, 32ll);
    const i64 v66 = shift_right(v64, 32ll);
    const i64 v67 = v66 ^ v52;
    const i64 v68 = v67 ^ v59;
    const i64 v69 = v65 ^ v51;
    const i64 v70 = v69 ^ v60;
    const i64 v71 = add(v59, 2654435769ll);
    const i64 v72 = add(v60, 3144134277ll);
    const i64 v73 = v68 & 4294967295ll;
    const i64 v74 = v70 & 4294967295ll;
    const i64 v75 = mul(v73, 3528531795ll);
    const i64 v76 = mul(v74, 3449720151ll);
    const i64 v77 = shift_right(v75, 32ll);
    const i64 v78 = shift_right(v76, 32ll);
    const i64 v79 = v78 ^ v64;
    const i64 v80 = v79 ^ v71;
    const i64 v81 = v77 ^ v63;
    const i64 v82 = v81 ^ v72;
    const i64 v83 = add(v71, 2654435769ll);
    const i64 v84 = add(v72, 3144134277ll);
    const i64 v85 = v80 & 4294967295ll;
    const i64 v86 = v82 & 4294967295ll;
    const i64 v87 = mul(v85, 3528531795ll);
    const i64 v88 = mul(v86, 3449720151ll);
    const i64 v89 = shift_right(v87, 32ll);
    const i64 v90 = shift_right(v88, 32ll);
    const i64 v91 = v90 ^ v76;
    const i64 v92 = v91 ^ v83;
    const i64 v93 = v89 ^ v75;
    const i64 v94 = v93 ^ v84;
    const i64 v95 = add(v83, 2654435769ll);
    const i64 v96 = add(v84, 3144134277ll);
    const i64 v97 = v92 & 4294967295ll;
    const i64 v98 = v94 & 4294967295ll;
    const i64 v99 = mul(v97, 3528531795ll);
    const i64 v100 = mul(v98, 3449720151ll);
    const i64 v101 = shift_right(v99, 32ll);
    const i64 v102 = shift_right(v100, 32ll);
    const i64 v103 = v102 ^ v88;
    const i64 v104 = v103 ^ v95;
    const i64 v105 = v101 ^ v87;
    const i64 v106 = v105 ^ v96;
    const i64 v107 = add(v95, 2654435769ll);
    const i64 v108 = add(v96, 3144134277ll);
    const i64 v109 = v104 & 4294967295ll;
    const i64 v110 = v106 & 4294967295ll;
    const i64 v111 = mul(v109, 3528531795ll);
    const i64 v112 = mul(v110, 3449720151ll);
    const i64 v113 = shift_right(v111, 32ll);
    const i64 v114 = shift_right(v112, 32ll);
    const i64 v115 = v114 ^ v100;
    const i64 v116 = v115 ^ v107;
    const i64 v117 = v113 ^ v99;
    const i64 v118 = v117 ^ v108;
    const i64 v119 = add(v107, 2654435769ll);
    const i64 v120 = add(v108, 3144134277ll);
    const i64 v121 = v116 & 4294967295ll;
    const i64 v122 = v118 & 4294967295ll;
    const i64 v123 = mul(v121, 3528531795ll);
    const i64 v124 = mul(v122, 3449720151ll);
    const i64 v125 = shift_right(v123, 32ll);
    const i64 v126 = shift_right(v124, 32ll);
    const i64 v127 = v126 ^ v112;
    const i64 v128 = v127 ^ v119;
    const i64 v129 = v125 ^ v111;
    const i64 v130 = v129 ^ v120;
    const i64 v131 = add(v119, 2654435769ll);
    const i64 v132 = add(v120, 3144134277ll);
    const int v133 = (int)(v128);
    return v133;
}

DEVICE float log_f32(float x)
{
    const int v2 = __float_as_int(x);
    const float v5 = x * 33554432.0f;
    const bool v7 = x < 1.1754944e-38f;
    const int v8 = __float_as_int(v5);
    const int v9 = sub(v8, 209715200);
    const int v10 = v7 ? v9 : v2;
    const int v13 = sub(v10, 1059760811);
    const int v14 = v13 & -8388608;
    const int v15 = sub(v10, v14);
    const float v16 = __int_as_float(v15);
    const float v17 = (float)(v14);
    const float v20 = fmaf(x, 0.0f, 1.0f);
    const float v21 = v16 - v20;
    const float v22 = v21 * v21;
    const float v25 = fmaf(0.14024644f, v21, -0.15382577f);
    const float v28 = fmaf(0.13996203f, v21, -0.16417204f);
    const float v29 = fmaf(v25, v22, v28);
    const float v32 = fmaf(0.20011126f, v21, -0.2500774f);
    const float v33 = fmaf(v29, v22, v32);
    const float v36 = fmaf(0.333332f, v21, -0.49999937f);
    const float v37 = fmaf(v33, v22, v36);
    const float v38 = fmaf(v22, v37, v21);
    const float v40 = fmaf(v17, 8.262958e-08f, v38);
    const float v43 = fmaf(x, INFINITE, INFINITE);
    const bool v44 = x == 0.0f;
    const float v45 = v40 < v43 ? v40 : v43;
    const float v46 = v44 ? -INFINITE : v45;
    return v46;
}

DEVICE float cos_f32(float x)
{
    const float v2 = fabsf(x);
    const int v4 = __float_as_int(v2);
    const int v6 = shift_right(v4, 23);
    const int v9 = v4 & 8388607;
    const int v10 = v9 | 8388608;
    const int v13 = sub(v6, 126);
    const int v14 = v13 < 127 ? v13 : 127;
    const int v15 = sub(v13, v14);
    const int v16 = shift_left(v10, v15);
    const i64 v17 = (i64)(v16);
    const i64 v18 = (i64)(v14);
    const i64 v28 = v18 & 64ll;
    const bool v29 = v28 != 0ll;
    const i64 v30 = v29 ? 2433043071ll : 40ll;
    const i64 v31 = v29 ? 165016701ll : 3194018707ll;
    const i64 v32 = v29 ? 1295478838ll : 2433043071ll;
    const i64 v33 = v29 ? 3634718287ll : 165016701ll;
    const i64 v34 = v29 ? 283381887ll : 1295478838ll;
    const i64 v36 = v18 & 32ll;
    const bool v37 = v36 != 0ll;
    const i64 v38 = v37 ? v31 : v30;
    const i64 v39 = v37 ? v32 : v31;
    const i64 v40 = v37 ? v33 : v32;
    const i64 v41 = v37 ? v34 : v33;
    const i64 v44 = v18 & 31ll;
    const i64 v45 = sub(32ll, v44);
    const i64 v46 = shift_left(v38, v44);
    const i64 v47 = shift_right(v39, v45);
    const i64 v48 = v46 | v47;
    const i64 v49 = v48 & 4294967295ll;
    const i64 v50 = shift_left(v39, v44);
    const i64 v51 = shift_right(v40, v45);
    const i64 v52 = v50 | v51;
    const i64 v53 = v52 & 4294967295ll;
    const i64 v54 = shift_left(v40, v44);
    const i64 v55 = shift_right(v41, v45);
    const i64 v56 = v54 | v55;
    const i64 v57 = v56 & 4294967295ll;
    const i64 v58 = mul(v17, v49);
    const i64 v59 = mul(v17, v53);
    const i64 v60 = mul(v17, v57);
    const i64 v61 = shift_left(v58, 32ll);
    const i64 v62 = shift_right(v60, 32ll);
    const i64 v63 = add(v61, v59);
    const i64 v64 = add(v63, v62);
    const i64 v65 = shift_right(v64, 32ll);
    const i64 v66 = v64 & 4294967295ll;
    const i64 v69 = add(v65, 536870912ll);
    const i64 v70 = shift_right(v69, 30ll);
    const i64 v71 = shift_left(v70, 30ll);
    const i64 v72 = sub(v65, v71);
    const i64 v75 = add(v72, 4843621399236968448ll);
    const double v76 = __longlong_as_double(v75);
    const double v77 = v76 - 6755399441055744.0;
    const i64 v78 = add(v66, 4843621399236968448ll);
    const double v79 = __longlong_as_double(v78);
    const double v80 = v79 - 6755399441055744.0;
    const double v82 = fma(v77, 4294967296.0, v80);
    const double v84 = v82 * 3.4061215800865545e-19;
    const float v85 = (float)(v84);
    const bool v86 = v2 < 0.7853982f;
    const float v87 = v86 ? v2 : v85;
    const i64 v88 = v86 ? 0ll : v70;
    const i64 v90 = add(v88, 1ll);
    const float v91 = v87 * v87;
    const float v96 = fmaf(-0.00019518763f, v91, 0.008332192f);
    const float v98 = fmaf(v96, v91, -0.16666655f);
    const float v99 = v87 * v91;
    const float v100 = fmaf(v99, v98, v87);
    const float v103 = fmaf(2.4430663e-05f, v91, -0.0013887301f);
    const float v105 = fmaf(v103, v91, 0.041666646f);
    const float v106 = fmaf(v105, v91, -0.5f);
    const float v107 = fmaf(v106, v91, 1.0f);
    const i64 v109 = v90 & 1ll;
    const i64 v110 = v90 & 2ll;
    const bool v111 = v109 != 0ll;
    const bool v112 = v110 != 0ll;
    const float v113 = v111 ? v107 : v100;
    const float v114 = -(v113);
    const float v115 = v112 ? v114 : v113;
    const bool v118 = v2 < INFINITE;
    const float v119 = v118 ? v115 : NO_NUMBER;
    return v119;
}

DEVICE float exp_f32(float x)
{
    const float v3 = 89.0f < x ? 89.0f : x;
    const float v5 = -120.0f > v3 ? -120.0f : v3;
    const float v8 = fmaf(v5, 0.7213475f, 12583039.0f);
    const int v10 = __float_as_int(v8);
    const int v11 = shift_left(v10, 23);
    const float v12 = v8 - 12583039.0f;
    const float v15 = fmaf(v12, -1.3862915f, v5);
    const float v16 = fmaf(v12, -2.8572135e-06f, v15);
    const float v19 = fmaf(0.0001963098f, v16, 0.0014105533f);
    const float v21 = fmaf(v19, v16, 0.008335963f);
    const float v23 = fmaf(v21, v16, 0.041661195f);
    const float v25 = fmaf(v23, v16, 0.16666616f);
    const float v27 = fmaf(v25, v16, 0.50000036f);
    const float v29 = fmaf(v27, v16, 1.0f);
    const float v30 = fmaf(v29, v16, 1.0f);
    const float v31 = __int_as_float(v11);
    const float v32 = v30 * v31;
    const float v33 = v32 * v31;
    return v33;
}

/* ---- kernels ---- */

/* 1 item, a thread each */
extern "C" __global__ void __launch_bounds__(1)
k0_const(i64 *b0)
{
    b0[0] = 0ll;
}

#line 5 "rows.model"
/* 960 items, a thread each */
extern "C" __global__ void __launch_bounds__(256)
k1_mul(const i64 *b0, const i64 *b1, float *b2)
{
    const u32 item = (u32)blockIdx.x * 256 + threadIdx.x;
    if (item >= 960)
        return;
    const int i = item;
    const i64 v1 = b0[0];
    const i64 v2 = b1[0];
    const i64 v5 = v1 ^ v2;
    const i64 v6 = (i64)(i);
    const int v7 = random_bits(v5, v6, 0ll);
    const i64 v8 = v1 ^ v2;
    const i64 v10 = v8 ^ -7046029254386353131ll;
    const i64 v11 = (i64)(i);
    const int v12 = random_bits(v10, v11, 0ll);
    const int v14 = shift_right(v7, 8);
    const float v15 = (float)(v14);
    const float v17 = v15 * 5.9604645e-08f;
    const float v19 = 1.0f - v17;
    const float v20 = log_f32(v19);
    const float v22 = -2.0f * v20;
    const float v23 = sqrtf(v22);
    const int v24 = shift_right(v12, 8);
    const float v25 = (float)(v24);
    const float v26 = v25 * 5.9604645e-08f;
    const float v28 = 6.2831855f * v26;
    const float v29 = cos_f32(v28);
    const float v30 = v23 * v29;
    const float v32 = v30 * 0.1f;
    b2[i] = v32;
}

/* 1 item, a thread each */
extern "C" __global__ void __launch_bounds__(1)
k2_const(float *b0)
{
    b0[0] = NO_NUMBER;
}

#line 6 "rows.model"
/* 1 of 6 x 24, sums of 40; a block has 8 x 32 of them, a thread 1 x 1 */
extern "C" __global__ void __launch_bounds__(256, 4)
k3_contract(const float *b0, const float *b1, float *b2)
{
    SHARED(float, left, [16][12]);
    SHARED(float, right, [16][36]);
    const int row_thread = threadIdx.x / 32, col_thread = threadIdx.x % 32;
    const int tile = blockIdx.x;
    const int n_from = 0;
    const int m_from = 0;
    float chain[1][1] = {};
    for (int k_from = 0; k_from < 40; k_from += 16) {
        const int k_end = 40;
        for (int e = threadIdx.x; e < 128; e += 256) {
            const int at = e / 16, depth = e % 16;
            const int m_at = m_from + at, k_at = k_from + depth;
            if (m_at < 6 && k_at < k_end) {
                const int i = m_at;
                const int k = k_at;
                const float v4 = b0[40 * i + k];
                left[depth][at] = v4;
            }
        }
        for (int e = threadIdx.x; e < 512; e += 256) {
            const int at = e % 32, depth = e / 32;
            const int n_at = n_from + at, k_at = k_from + depth;
            if (n_at < 24 && k_at < k_end) {
                const int j = n_at;
                const int k = k_at;
                const float v5 = b1[j + 24 * k];
                right[depth][at] = v5;
            }
        }
        __syncthreads();
        if (k_from + 16 <= k_end)
            #pragma unroll
            for (int depth = 0; depth < 16; depth++)
                multiply(chain, &left[depth][row_thread * 1], &right[depth][col_thread * 1]);
        else
            for (int depth = 0; depth < k_end - k_from; depth++)
                multiply(chain, &left[depth][row_thread * 1], &right[depth][col_thread * 1]);
        __syncthreads();
    }
    #pragma unroll
    for (int row = 0; row < 1; row++) {
        #pragma unroll
        for (int col = 0; col < 1; col++) {
            const int m_at = m_from + row_thread * 1 + row;
            const int n_at = n_from + col_thread * 1 + col;
            if (m_at >= 6 || n_at >= 24)
                continue;
            const int i = m_at;
            const int j = n_at;
            const float v6 = chain[row][col];
            b2[24 * i + j] = v6;
        }
    }
}

#line 6 "rows.model"
/* 6 items, 16 threads each */
extern "C" __global__ void __launch_bounds__(96)
k4_reduce_max_sum(const float *b0, float *b1, float *b2)
{
    const int team = threadIdx.x / 16, thread = threadIdx.x % 16;
    const u32 members = 0xffffu << (threadIdx.x & 16);
    SHARED(float, rows3, [6][24]);
    float *const b3 = rows3[team];
    const u32 item = (u32)blockIdx.x * 6 + team;
    const int i = item;
    float acc2 = -INFINITE;
    bool acc3 = false;
    for (int j = thread; j < 24; j += 16) {
        const float v5 = b0[24 * i + j];
        acc2 = acc2 > v5 ? acc2 : v5;
        const bool v7 = v5 != v5;
        acc3 = acc3 | v7;
    }
    const float v10 = team_fold<Max, 16>(members, acc2);
    const bool v11 = team_fold<Or, 16>(members, acc3);
    const float v13 = v11 ? NO_NUMBER : v10;
    float acc14 = 0.0f;
    for (int k = thread; k < 24; k += 16) {
        const float v16 = b0[24 * i + k];
        const float v17 = v16 - v13;
        const float v18 = exp_f32(v17);
        acc14 = acc14 + v18;
        b3[k] = v18;
    }
    const float v22 = team_fold<Add, 16>(members, acc14);
    const float v24 = 1.0f / v22;
    float acc25 = 0.0f;
    __syncwarp(members);
    for (int l = thread; l < 24; l += 16) {
        const float v27 = b3[l];
        const float v28 = v27 * v24;
        const float v29 = v28 * v28;
        acc25 = acc25 + v29;
        b2[24 * i + l] = v28;
    }
    const float v33 = team_fold<Add, 16>(members, acc25);
    if (thread == 0)
        b1[i] = v33;
}

#line 7 "rows.model"
/* 1 item, a thread each */
extern "C" __global__ void __launch_bounds__(1)
k5_sum_div(const i64 *b0, const float *b1, float *b2)
{
    float acc1[16];
    fill(acc1, 0.0f);
    for (int i_from = 0; i_from < 6; i_from += 16) {
        #pragma unroll
        for (int i_lane = 0; i_lane < 16; i_lane++) {
            const int i = i_from + i_lane;
            if (i >= 6)
                break;
            const i64 v3 = (i64)(i);
            const i64 v4 = b0[0];
            const bool v5 = v3 < v4;
            const float v6 = b1[i];
            const float v8 = v5 ? v6 : 0.0f;
            acc1[i_lane] = acc1[i_lane] + v8;
        }
    }
    const float v11 = fold<Add>(acc1);
    const i64 v12 = b0[0];
    const i64 v14 = mul(v12, 24ll);
    const float v15 = (float)(v14);
    const float v16 = v11 / v15;
    b2[0] = v16;
}

#line 6 "rows.model"
/* 6 items, 16 threads each */
extern "C" __global__ void __launch_bounds__(96)
k6_reduce_max_sum(const i64 *b0, const float *b1, float *b2, float *b3, float *b4, float *b5, float *b6)
{
    const int team = threadIdx.x / 16, thread = threadIdx.x % 16;
    const u32 members = 0xffffu << (threadIdx.x & 16);
    SHARED(float, rows7, [6][24]);
    float *const b7 = rows7[team];
    const u32 item = (u32)blockIdx.x * 6 + team;
    const int i = item;
    const i64 v1 = b0[0];
    const i64 v3 = mul(v1, 24ll);
    const float v4 = (float)(v3);
    const float v6 = 1.0f / v4;
    float acc8 = -INFINITE;
    bool acc9 = false;
    for (int j = thread; j < 24; j += 16) {
        const float v11 = b1[24 * i + j];
        acc8 = acc8 > v11 ? acc8 : v11;
        const bool v13 = v11 != v11;
        acc9 = acc9 | v13;
    }
    const float v16 = team_fold<Max, 16>(members, acc8);
    const bool v17 = team_fold<Or, 16>(members, acc9);
    const float v19 = v17 ? NO_NUMBER : v16;
    float acc20 = 0.0f;
    for (int k = thread; k < 24; k += 16) {
        const float v22 = b1[24 * i + k];
        const float v23 = v22 - v19;
        const float v24 = exp_f32(v23);
        acc20 = acc20 + v24;
        b7[k] = v24;
    }
    const float v28 = team_fold<Add, 16>(members, acc20);
    const float v29 = 1.0f / v28;
    float acc30 = 0.0f;
    __syncwarp(members);
    for (int l = thread; l < 24; l += 16) {
        const float v32 = b7[l];
        const float v33 = v32 * v29;
        const float v34 = v33 * v33;
        acc30 = acc30 + v34;
    }
    const float v37 = team_fold<Add, 16>(members, acc30);
    const i64 v38 = (i64)(i);
    const bool v39 = v38 < v1;
    const float v41 = v39 ? v6 : 0.0f;
    float acc42 = 0.0f;
    for (int m = thread; m < 24; m += 16) {
        const float v44 = b7[m];
        const float v45 = v44 * v29;
        const float v46 = v41 * v45;
        const float v47 = v46 + v46;
        const float v48 = v47 * v44;
        acc42 = acc42 + v48;
    }
    const float v51 = team_fold<Add, 16>(members, acc42);
    if (thread == 0)
        b2[i] = v28;
    if (thread == 0)
        b3[i] = v37;
    if (thread == 0)
        b4[i] = v51;
    for (int n = thread; n < 24; n += 16) {
        const float v56 = b7[n];
        b5[24 * i + n] = v56;
        const float v58 = v56 * v29;
        b6[24 * i + n] = v58;
    }
}

#line 6 "rows.model"
/* 1 of 40 x 24, sums of 6; a block has 32 x 32 of them, a thread 2 x 2 */
extern "C" __global__ void __launch_bounds__(256, 4)
k7_contract(const float *b0, const i64 *b1, const float *b2, const float *b3, const float *b4, const float *b5, float *b6)
{
    SHARED(float, left, [16][36]);
    SHARED(float, right, [16][36]);
    const int row_thread = threadIdx.x / 16, col_thread = threadIdx.x % 16;
    const int tile = blockIdx.x;
    const int n_from = 0;
    const int m_from = tile % 2 * 32;
    float chain[2][2] = {};
    for (int k_from = 0; k_from < 6; k_from += 16) {
        const int k_end = 6;
        for (int e = threadIdx.x; e < 512; e += 256) {
            const int at = e % 32, depth = e / 32;
            const int m_at = m_from + at, k_at = k_from + depth;
            if (m_at < 40 && k_at < k_end) {
                const int i = m_at;
                const int k = k_at;
                const float v4 = b0[i + 40 * k];
                left[depth][at] = v4;
            }
        }
        #pragma unroll 1
        for (int e = threadIdx.x; e < 512; e += 256) {
            const int at = e % 32, depth = e / 32;
            const int n_at = n_from + at, k_at = k_from + depth;
            if (n_at < 24 && k_at < k_end) {
                const int j = n_at;
                const int k = k_at;
                const i64 v5 = (i64)(k);
                const i64 v6 = b1[0];
                const bool v7 = v5 < v6;
                const i64 v10 = mul(v6, 24ll);
                const float v11 = (float)(v10);
                const float v12 = 1.0f / v11;
                const float v14 = v7 ? v12 : 0.0f;
                const float v15 = b2[j + 24 * k];
                const float v16 = v14 * v15;
                const float v17 = v16 + v16;
                const float v18 = b3[k];
                const float v19 = 1.0f / v18;
                const float v20 = v17 * v19;
                const float v21 = b4[k];
                const float v22 = v21 / v18;
                const float v23 = -(v22);
                const float v24 = v23 * v19;
                const float v25 = v20 + v24;
                const float v26 = b5[j + 24 * k];
                const float v27 = v25 * v26;
                right[depth][at] = v27;
            }
        }
        __syncthreads();
        if (k_from + 16 <= k_end)
            #pragma unroll 8
            for (int depth = 0; depth < 16; depth++)
                multiply(chain, &left[depth][row_thread * 2], &right[depth][col_thread * 2]);
        else
            #pragma unroll 8
            for (int depth = 0; depth < k_end - k_from; depth++)
                multiply(chain, &left[depth][row_thread * 2], &right[depth][col_thread * 2]);
        __syncthreads();
    }
    #pragma unroll
    for (int row = 0; row < 2; row++) {
        #pragma unroll
        for (int col = 0; col < 2; col++) {
            const int m_at = m_from + row_thread * 2 + row;
            const int n_at = n_from + col_thread * 2 + col;
            if (m_at >= 40 || n_at >= 24)
                continue;
            const int i = m_at;
            const int j = n_at;
            const float v28 = chain[row][col];
            b6[24 * i + j] = v28;
        }
    }
}

#line 11 "rows.model"
/* 1 item, 16 threads each */
extern "C" __global__ void __launch_bounds__(16)
k8_all_add(const float *b0, const float *b1, u8 *b2, const i64 *b3, i64 *b4)
{
    const int thread = threadIdx.x;
    const u32 members = 0xffffu << (threadIdx.x & 16);
    const float v1 = b0[0];
    const float v2 = fabsf(v1);
    const bool v4 = v2 < INFINITE;
    bool acc5 = true;
    for (int i = 0; i < 40; i++) {
        for (int j = thread; j < 24; j += 16) {
            const float v8 = b1[24 * i + j];
            const float v9 = fabsf(v8);
            const bool v10 = v9 < INFINITE;
            acc5 = acc5 & v10;
        }
    }
    const bool v14 = team_fold<And, 16>(members, acc5);
    const bool v15 = v4 & v14;
    __syncwarp(members);
    if (thread == 0)
        b2[0] = v15;
    const i64 v17 = b3[0];
    const bool v19 = v15 ^ true;
    const i64 v20 = (i64)(v19);
    const i64 v21 = add(v17, v20);
    __syncwarp(members);
    if (thread == 0)
        b4[0] = v21;
}

#line 12 "rows.model"
/* 960 items, a thread each */
extern "C" __global__ void __launch_bounds__(256)
k9_sub(const float *b0, const float *b1, const float *b2, float *b3, const u8 *guard)
{
    const u32 item = (u32)blockIdx.x * 256 + threadIdx.x;
    if (item >= 960)
        return;
    if (*guard == 0)
        return;
    const int i = item;
    const float v1 = b0[0];
    const bool v2 = v1 == v1;
    const float v4 = v2 ? v1 : 0.1f;
    const float v6 = b1[i];
    const float v7 = b2[i];
    const float v8 = v4 * v7;
    const float v9 = v6 - v8;
    b3[i] = v9;
}

/* 1 item, a thread each */
extern "C" __global__ void __launch_bounds__(1)
k10_add(const i64 *b0, i64 *b1, const u8 *guard)
{
    if (*guard == 0)
        return;
    const i64 v1 = b0[0];
    const i64 v3 = add(v1, 1ll);
    b1[0] = v3;
}

/* ---- launches: kernel<<<blocks, threads>>>(bytes of the arena) ----

entry init, 6144 bytes:
  k0_const<<<1, 1>>>(gradc.step at 1088)
  k0_const<<<1, 1>>>(gradc.skipped at 1152)
  k1_mul<<<4, 256>>>(gradc.seed at 1024, literal + 0, w at 1280)
  k2_const<<<1, 1>>>(lr at 5120)

entry eval, 6784 bytes:
  k3_contract<<<1, 256>>>(x + 0, w at 1280, contract.3 at 6144)
  k4_reduce_max_sum<<<1, 96>>>(contract.3 at 6144, sum.17 at 6720, y at 6144)
  k5_sum_div<<<1, 1>>>(gradc.rows at 1216, sum.17 at 6720, loss at 6720)

entry step, 11328 bytes:
  k3_contract<<<1, 256>>>(x + 0, w at 1280, contract.3 at 6784)
  k6_reduce_max_sum<<<1, 96>>>(gradc.rows at 1216, contract.3 at 6784, sum.8 at 7360, sum.16 at 6720, sum.40 at 7424, exp.7 at 6784, y at 6144)
  k5_sum_div<<<1, 1>>>(gradc.rows at 1216, sum.16 at 6720, loss at 6720)
  k7_contract<<<2, 256>>>(x + 0, gradc.rows at 1216, y at 6144, sum.8 at 7360, sum.40 at 7424, exp.7 at 6784, contract.47 at 7488)
  k8_all_add<<<1, 16>>>(loss at 6720, contract.47 at 7488, finite at 6784, gradc.skipped at 1152, gradc.skipped at 1152)
  guarded:
    k9_sub<<<4, 256>>>(lr at 5120, w at 1280, contract.47 at 7488, w at 1280, finite at 6784)
    k10_add<<<1, 1>>>(gradc.step at 1088, gradc.step at 1088, finite at 6784)
*/
